"""Translation of a source topic's offsets to the offsets of its mirror.

Between its micro-batches, when no records are in flight, the mirror stores *points*: pairs (source
offset, target offset) of a partition. All records before the source offset are before the target
offset, and all records from the source offset on are from the target offset on. Between two points
only the order is known, as either side may have gaps (compaction, transactions). So an offset is
translated to the point before it: a consumer that resumes there misses no records, but reads again
those since that point, which may be several micro-batches. At a point itself the translation is
exact.
"""

import bisect
import json
from collections.abc import Iterable
from typing import NamedTuple


class Point(NamedTuple):
    """A pair of offsets that denote the same position of a partition."""

    partition: int
    source_offset: int
    target_offset: int

    def encode(self, topic: str, cluster_id: str = "") -> tuple[bytes, bytes]:
        """Return key and value of the record that stores a point of a source topic.

        The cluster's id is for a target to which several clusters are mirrored.
        """
        key: dict[str, str | int] = {"topic": topic, "partition": self.partition}
        if cluster_id:
            key["cluster"] = cluster_id
        value = {"source_offset": self.source_offset, "target_offset": self.target_offset}
        return json.dumps(key).encode(), json.dumps(value).encode()

    @classmethod
    def decode(
        cls, topic: str, key: bytes | None, value: bytes | None, cluster_id: str = ""
    ) -> "Point | None":
        """Return the point in a record; None if it is of another topic or cluster, or not a point.

        Points without a cluster belong to any.
        """
        try:
            origin, offsets = json.loads(key or b""), json.loads(value or b"")
            stored_id = origin.get("cluster", "")
            if origin["topic"] != topic or (cluster_id and stored_id not in ("", cluster_id)):
                return None
            return cls(
                int(origin["partition"]),
                int(offsets["source_offset"]),
                int(offsets["target_offset"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def origin_of(key: bytes | None) -> tuple[str, str] | None:
    """Return cluster and topic of the source in a point's key; None if the key has no cluster."""
    try:
        origin = json.loads(key or b"")
        return str(origin["cluster"]), str(origin["topic"])
    except (ValueError, KeyError, TypeError):
        return None


class Translation:
    """Translates the offsets of a source topic, by partition."""

    def __init__(self, points: Iterable[Point]) -> None:
        self._points: dict[int, list[tuple[int, int]]] = {}
        for point in points:
            partition_points = self._points.setdefault(point.partition, [])
            partition_points.append((point.source_offset, point.target_offset))
        for partition, partition_points in self._points.items():
            # If a source offset was stored twice, both points are valid, and the later one is
            # further.
            self._points[partition] = sorted(dict(sorted(partition_points)).items())

    def translate(self, partition: int, source_offset: int) -> int | None:
        """Return the target offset; None before the first known point."""
        partition_points = self._points.get(partition, [])
        at = bisect.bisect_right(partition_points, source_offset, key=lambda point: point[0])
        return partition_points[at - 1][1] if at else None
