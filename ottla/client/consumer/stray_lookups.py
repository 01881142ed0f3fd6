"""Guards positions against outdated lookups of librdkafka.

If a partition is revoked or sought while librdkafka looks up its first or last offset, or stays
while others come or go, librdkafka drops the response but repeats the lookup 500 ms later, although
the partition has a position by then. So it reads from the first record again, or skips records up
to the end. For two seconds after such a change, the offsets of the partition's records are compared
with those expected; the first one that differs, also the end offset, is corrected by a seek. A gap
of a compacted log costs one more fetch.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla.base.errors import ApiError
from ottla.client import transport
from ottla.client.consumer.membership import Membership
from ottla.client.errors import ClientError
from ottla.client.records import OffsetAndMetadata, TopicPartition

_log = logging.getLogger("ottla.client")
# librdkafka repeats a lookup after 500 ms; the rest is for slow brokers.
_GUARDED_S = 2.0
# The next record may have any offset.
_ANY = -1


class StrayLookups:
    """The partitions of one consumer that an outdated lookup may move; usually none."""

    def __init__(
        self,
        membership: Membership,
        committed: Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, OffsetAndMetadata]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._membership = membership
        self._committed = committed
        self._clock = clock
        self._until: dict[TopicPartition, float] = {}
        # The offset of the next record; a partition that is missing begins where the group says.
        self._expected: dict[TopicPartition, int] = {}

    @property
    def is_active(self) -> bool:
        """Whether the next records must be checked."""
        return bool(self._until)

    def guard(self, unread: Iterable[TopicPartition]) -> None:
        """Guard partitions that are revoked or sought, or stay in a rebalance, before their first
        record.
        """
        for key in unread:
            self._until[key] = self._clock() + _GUARDED_S
            self._expected.pop(key, None)

    def expect(self, key: TopicPartition, offset: int) -> None:
        """Expect this offset next if the partition is guarded; any offset if it is negative."""
        if key in self._until:
            self._expected[key] = max(offset, _ANY)

    def checked(self, messages: list[Any]) -> list[Any]:
        """Return the messages of partitions that have not moved; set the starts of the others."""
        now = self._clock()
        for key in [key for key, until in self._until.items() if until <= now]:
            self._forget(key)
        self._expect_committed(messages)
        good, moved = [], set()
        for message in messages:
            key = TopicPartition(message.topic(), message.partition())
            if key in moved:
                continue
            is_end = transport.is_end(message)
            if key in self._until and (is_end or message.error() is None):
                expected = self._expected[key]
                if expected not in (_ANY, message.offset()):
                    _log.info("%s continues at %d, not at %d", key, expected, message.offset())
                    self._membership.starts[key] = expected
                    self._forget(key)
                    moved.add(key)
                    continue
                self._expected[key] = message.offset() + (not is_end)
            good.append(message)
        return good

    def _expect_committed(self, messages: Iterable[Any]) -> None:
        read = {TopicPartition(row.topic(), row.partition()) for row in messages}
        begun = (read & self._until.keys()) - self._expected.keys()
        for key in begun & self._membership.chosen.keys():
            self.expect(key, self._membership.chosen[key])
        unknown = sorted(begun - self._expected.keys())
        if not unknown:
            return
        committed: Mapping[TopicPartition, OffsetAndMetadata] = {}
        try:
            committed = self._committed(unknown)
        except (ApiError, ClientError) as error:
            # The records were taken from librdkafka: they must not be lost.
            _log.info("starts are not checked: %s", error)
        for key in unknown:
            self._expected[key] = committed[key].offset if key in committed else _ANY

    def _forget(self, key: TopicPartition) -> None:
        self._until.pop(key, None)
        self._expected.pop(key, None)
