"""How the transaction coordinator's markers reach partitions (the MarkerWriter port of `coordinators`).

This broker's own partitions only: there is no way to others yet. A marker in __consumer_offsets goes
through the group coordinator, whose memory it changes.
"""

import asyncio
from collections.abc import Mapping, Sequence

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.group.service import OFFSETS_TOPIC, GroupCoordinator
from ottla.coordinators.ports import Marker
from ottla.coordinators.replies import Reply, gathered
from ottla.replication.partition import ACKS_ALL
from ottla.replication.replicas import Replicas
from ottla.server.partition_writer import encode_marker

# After that the coordinator writes it again.
_COMMIT_SECONDS = 30.0

Codes = Mapping[tuple[str, int], ErrorCode]


class ReplicaMarkers:
    """Writes markers to the partitions that this broker leads."""

    def __init__(self, replicas: Replicas, groups: GroupCoordinator, clock: Clock) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock

    def write(self, marker: Marker, partitions: Sequence[tuple[str, int]]) -> Reply[Codes]:
        """Write the marker to each partition and tell of each whether it is committed."""
        replies = [self._write_one(marker, topic, number) for topic, number in partitions]

        def named(codes: list[ErrorCode]) -> Codes:
            return dict(zip(partitions, codes, strict=True))

        return gathered(replies, named)

    def _write_one(self, marker: Marker, topic: str, number: int) -> Reply[ErrorCode]:
        try:
            target = self._replicas.get(topic, number)
            if topic == OFFSETS_TOPIC:
                return self._groups.end_transaction(number, marker)
            encoded = encode_marker(marker, self._clock.time_ms())
            info = target.append_as_leader(encoded, acks=ACKS_ALL, from_client=False)
        except ApiError as error:
            return error.code
        end_offset = info.last_offset + 1
        if target.is_acknowledged(ACKS_ALL, end_offset):
            return ErrorCode.NONE
        done: asyncio.Future[ErrorCode] = target.wait_for_acknowledgement(
            ACKS_ALL, end_offset, _COMMIT_SECONDS
        )
        return done
