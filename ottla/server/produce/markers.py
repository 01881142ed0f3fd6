"""Transaction markers in the partitions that this broker leads.

`server.brokers.markers` sends the markers of other brokers' partitions to them. A marker in
__consumer_offsets is written through the group coordinator, because it changes the coordinator's
state.
"""

import asyncio
from collections.abc import Mapping, Sequence

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.coordinators.ports import Marker
from ottla.coordinators.replies import Reply, gathered
from ottla.coordinators.txn.machine import BUMPING_VERSION
from ottla.coordinators.txn.state import EPOCH_MAX
from ottla.replication.partition import ACKS_ALL, Partition
from ottla.replication.replicas import Replicas
from ottla.server.produce.partition_writer import encode_marker

# When this timeout expires the coordinator writes the marker again.
_COMMIT_SECONDS = 30.0

Codes = Mapping[tuple[str, int], ErrorCode]


class ReplicaMarkers:
    """Writes markers to the partitions that this broker leads."""

    def __init__(self, replicas: Replicas, groups: GroupCoordinator, clock: Clock) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock

    def write(self, marker: Marker, partitions: Sequence[tuple[str, int]]) -> Reply[Codes]:
        """Write the marker to each partition; return for each whether it is committed."""
        replies = [self._write_one(marker, topic, number) for topic, number in partitions]

        def named(codes: list[ErrorCode]) -> Codes:
            return dict(zip(partitions, codes, strict=True))

        return gathered(replies, named)

    def _write_one(self, marker: Marker, topic: str, number: int) -> Reply[ErrorCode]:
        try:
            target = self._replicas.get(topic, number)
            _check_epoch(target, marker)
            if topic == GROUP_OFFSETS_TOPIC:
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


def _check_epoch(target: Partition, marker: Marker) -> None:
    """Refuse a marker that is so late that it would end the producer's next transaction.

    From transaction.version 2 on the marker has an epoch that no record of its transaction has
    (KIP-1228). A marker with the epoch of the last marker is a repetition of it, which is allowed.
    """
    if marker.transaction_version < BUMPING_VERSION:
        return
    known = target.log.producers.producers.get(marker.producer_id)
    if known is None or known.epoch < marker.producer_epoch:
        return
    is_written = known.transaction_first_offset < 0 or marker.producer_epoch == EPOCH_MAX
    if known.epoch > marker.producer_epoch or not is_written:
        raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
