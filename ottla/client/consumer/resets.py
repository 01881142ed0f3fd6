"""Starts by age: `auto.offset.reset=by_duration:PT1H` (KIP-1106).

librdkafka knows only the first and the last offset. With this setting it reports each partition
that has no valid position, and the offset of the first record of the given age is sought here.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from ottla.client import transport
from ottla.client.consumer.lookups import Lookups
from ottla.client.consumer.membership import Membership
from ottla.client.records import TopicPartition


class StartsByAge:
    """The partitions of one consumer that wait for an offset; usually none."""

    def __init__(
        self,
        age_ms: int,
        lookups: Lookups,
        membership: Membership,
        positions: Callable[[], dict[TopicPartition, int]],
    ) -> None:
        self._age_ms = age_ms
        self._lookups = lookups
        self._membership = membership
        self._positions = positions
        self._waiting: set[TopicPartition] = set()
        # Found offsets of partitions from which nothing was read yet: librdkafka forgets them when
        # another partition is assigned with its offset.
        self._found: dict[TopicPartition, int] = {}

    def offsets(self, partitions: Iterable[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the offset of the first record of this age or younger; the end without such a
        record.

        Raises TimedOut, ApiError or ClientError as a lookup does.
        """
        since_ms = max(0, time.time_ns() // 1_000_000 - self._age_ms)
        times: dict[tuple[str, int], float] = dict.fromkeys(partitions, since_ms)
        found = self._lookups.offsets_for_times(times)
        missing = [key for key, offset in found.items() if offset is None]
        if missing:
            # The end is looked up first: a record that arrives between the two must not be skipped.
            ends = self._lookups.ends(missing)
            again = self._lookups.offsets_for_times({key: times[key] for key in missing})
            found |= {
                key: ends[key][1] if offset is None else offset for key, offset in again.items()
            }
        return {key: offset for key, offset in found.items() if offset is not None}

    def without_reports(self, messages: list[Any]) -> list[Any]:
        """Return the messages that are no reports of a missing position; `seek` handles those."""
        others = []
        for message in messages:
            error = message.error()
            if error is not None and error.code() == transport.NO_POSITION:
                self._waiting.add(TopicPartition(message.topic(), message.partition()))
            else:
                others.append(message)
        return others

    def seek(self) -> None:
        """Seek the partitions that wait. After an error, which is raised, they wait on."""
        self._waiting &= self._membership.assignment
        if not self._waiting:
            return
        found = self.offsets(sorted(self._waiting))
        self._waiting.clear()
        positions = self._positions()
        unread = {key: offset for key, offset in self._found.items() if key not in positions}
        self._found = unread | found
        self._membership.starts.update(self._found)
        self._membership.apply_starts()

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that leave this consumer, or that it seeks."""
        for key in partitions:
            self._found.pop(key, None)
