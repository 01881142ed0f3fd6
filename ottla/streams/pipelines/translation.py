"""Which offset of a mirror belongs to an offset of the topic it mirrors.

The mirror notes *points* between its micro-batches, when nothing is on its way: (source offset, target offset) of a
partition says that every record before the one is before the other, and every record from the one on is from the other
on. Between two points nothing is known but the order, as either side may have gaps (compaction, transactions), so
that an offset is translated to the point before it: a consumer that goes on there misses nothing, and sees again what
it had read since that point, which may be several micro-batches. At a point itself the translation is exact.
"""

import bisect
import json
from collections.abc import Iterable
from typing import NamedTuple


class Point(NamedTuple):
    """A pair of offsets that mean the same place of a partition."""

    partition: int
    source_offset: int
    target_offset: int

    def encode(self, topic: str) -> tuple[bytes, bytes]:
        """Return key and value of the record that keeps a point of a source topic."""
        key = {"topic": topic, "partition": self.partition}
        value = {"source_offset": self.source_offset, "target_offset": self.target_offset}
        return json.dumps(key).encode(), json.dumps(value).encode()

    @classmethod
    def decode(cls, topic: str, key: bytes | None, value: bytes | None) -> "Point | None":
        """Return the point in a record; None where it is of another topic, or none at all."""
        try:
            place, offsets = json.loads(key or b""), json.loads(value or b"")
            if place["topic"] != topic:
                return None
            return cls(
                int(place["partition"]),
                int(offsets["source_offset"]),
                int(offsets["target_offset"]),
            )
        except (ValueError, KeyError, TypeError):
            return None


class Translation:
    """Translates offsets of a source topic, partition by partition."""

    def __init__(self, points: Iterable[Point]) -> None:
        self._points: dict[int, list[tuple[int, int]]] = {}
        for point in points:
            known = self._points.setdefault(point.partition, [])
            known.append((point.source_offset, point.target_offset))
        for partition, known in self._points.items():
            # Of one source offset that was noted twice, the later place is as right, and further.
            self._points[partition] = sorted(dict(sorted(known)).items())

    def translate(self, partition: int, source_offset: int) -> int | None:
        """Return the target offset; None before the first point that is known."""
        known = self._points.get(partition, [])
        at = bisect.bisect_right(known, source_offset, key=lambda point: point[0])
        return known[at - 1][1] if at else None
