"""The lag of groups in seconds: the age of the next record that a group will read, by its timestamp
in the log.

The record that a consumer gets is found exactly, with its offset and behind control batches.
/metrics measures every partition at every scrape: `server.lag.times` remembers times.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from ottla.base.errors import ApiError, StorageError
from ottla.base.files import FileSystem
from ottla.cluster.image import NO_LEADER
from ottla.replication.partition import Partition
from ottla.server.context import Broker
from ottla.server.lag.uncommitted import members_of, uncommitted_of
from ottla.server.search import rows
from ottla.server.search.chunks import as_api_error, read_chunk
from ottla.server.search.scan import BODY_BYTES_MAX
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.records.records import NextRecord, next_record

# One batch is enough in most cases, and at least one is read.
_CHUNK_BYTES = 4 * 1024


class GroupPosition(NamedTuple):
    """A position in a partition; `group` is None if the caller named the position.

    `offset` is None without a commit: the group may start at the beginning.
    """

    group: str | None
    topic: str
    partition: int
    offset: int | None


class LagReport:
    """The lag of groups, or of positions, on this broker."""

    def __init__(
        self,
        broker: Broker,
        files: FileSystem,
        groups: Sequence[str],
        positions: Sequence[tuple[str, int, int]],
    ) -> None:
        self._broker = broker
        self._files = files
        self._groups = groups
        self._positions = positions

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield a row for each partition of a group, or for each position."""
        count = 0
        positions = [*self._committed(), *await self._uncommitted()]
        # Named positions first, in the order of the request.
        positions.sort(
            key=lambda row: () if row.group is None else (row.group, row.topic, row.partition)
        )
        for group in sorted(set(self._groups) - {position.group for position in positions}):
            yield rows.line("elsewhere", group=group)
        for position in positions:
            count += 1
            yield await self._row(position)
        yield rows.line("end", now=self._broker.clock.time_ms(), rows=count)

    async def _uncommitted(self) -> list[GroupPosition]:
        """Return the partitions that the groups read without a commit."""
        if self._positions and not self._groups:
            return []
        groups = self._broker.groups
        listed = [
            group
            for group in groups.list_groups(ListGroupsRequest()).groups
            if not self._groups or group.group_id in self._groups
        ]
        wanted = {group.group_id for group in listed}
        known = {
            name: list(offsets) for name, offsets in groups.committed_offsets() if name in wanted
        }
        rest = partial(self._broker.clock.sleep, 0)
        owners: list[tuple[str, str, int]] = []
        for group in listed:
            await rest()
            for _, keys in members_of(groups, group) or ():
                owners += ((group.group_id, *key) for key in keys)
        missing = await uncommitted_of(self._broker.image, listed, known, owners, rest)
        return [GroupPosition(group, topic, number, None) for group, (topic, number) in missing]

    def _committed(self) -> Iterator[GroupPosition]:
        for topic, partition, offset in self._positions:
            yield GroupPosition(None, topic, partition, offset)
        if self._positions and not self._groups:
            return
        for group, offsets in self._broker.groups.committed_offsets():
            if self._groups and group not in self._groups:
                continue
            for (topic, number), committed in sorted(offsets.items()):
                yield GroupPosition(group, topic, number, committed.offset)

    async def _row(self, position: GroupPosition) -> bytes:
        fields: dict[str, Any] = {} if position.group is None else {"group": position.group}
        fields |= {
            "topic": position.topic,
            "partition": position.partition,
            "committed_offset": position.offset,
        }
        state = self._broker.image.partition(position.topic, position.partition)
        if state is None:
            return rows.line("lag", **fields, error="UNKNOWN_TOPIC_OR_PARTITION")
        try:
            partition = self._broker.replicas.get(position.topic, position.partition)
            partition.check_leader()
        except ApiError:
            is_here = state.leader == self._broker.node_id
            return rows.line("lag", **fields, leader=NO_LEADER if is_here else state.leader)
        try:
            start = partition.log.log_start_offset
            offset = start if position.offset is None else position.offset
            return rows.line("lag", **fields, **await self._measure(partition, offset))
        except (ApiError, StorageError) as error:
            return rows.line("lag", **fields, error=as_api_error(error).code.name)

    async def _measure(self, partition: Partition, offset: int) -> dict[str, Any]:
        end = partition.high_watermark
        fields: dict[str, Any] = {"end_offset": end, "lag": max(end - offset, 0)}
        record = await self._next(partition, offset, end) if offset < end else None
        if record is None:
            return {**fields, "seconds": 0}
        fields["next_offset"] = record.offset
        if record.timestamp < 0:
            return {**fields, "ts": None, "seconds": None}
        age_ms = max(self._broker.clock.time_ms() - record.timestamp, 0)
        return {**fields, "ts": record.timestamp, "seconds": age_ms / 1000}

    async def _next(self, partition: Partition, offset: int, end: int) -> NextRecord | None:
        """Return the first record at or after an offset that a consumer gets."""
        at = max(offset, partition.log.log_start_offset)
        while at < end:
            data = await read_chunk(partition, at, end, max_bytes=_CHUNK_BYTES)
            record, after = await self._files.in_background(
                partial(next_record, data, at, max_bytes=BODY_BYTES_MAX)
            )
            if record is not None or after <= at:
                return record
            at = after
        return None
