"""Topics, records and groups of a test cluster: a test arranges and asserts them."""

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import groups, offsets, topics
from ottla.client.admin.groups import Group
from ottla.client.brokers import Brokers
from ottla.client.producer.partitioners import murmur2_partition
from ottla.client.raw.batches import append_batch
from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.testing.cluster_state import found
from ottla.testing.option_values import OptionValue, option_texts
from ottla.wire.records.records import Record

Payload = bytes | str | None
_POLL_SECONDS = 0.1
_READ_MAX = 500


class ClusterTopics(ABC):
    """The topics of a cluster; `admin` returns a client, and `plain_bootstrap` its addresses."""

    def admin(self) -> Brokers:
        """Return a new client for the functions of `ottla.client.admin`; close it after use."""
        return Brokers(self.plain_bootstrap)

    @property
    @abstractmethod
    def plain_bootstrap(self) -> str:
        """The addresses of a listener without security, if there is one."""

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, OptionValue] | None = None,
    ) -> None:
        """Create a topic; raises ApiError if it exists or its name or configuration is invalid."""
        with self.admin() as brokers:
            topics.create_topic(
                brokers,
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                config=option_texts(config or {}),
            )

    def delete_topic(self, name: str, *, timeout_seconds: float = 30.0) -> None:
        """Delete a topic, and return when it can be created again; ApiError if it does not exist."""
        with self.admin() as brokers:
            topics.delete_topic(brokers, name)

            def is_gone() -> bool | None:
                return all(row.name != name for row in topics.list_topics(brokers)) or None

            found(is_gone, f"{name} is not deleted", timeout_seconds)

    def topics(self) -> list[str]:
        """Return the names of the topics, without internal ones."""
        with self.admin() as brokers:
            return [row.name for row in topics.list_topics(brokers) if not row.is_internal]

    def produce(
        self,
        topic: str,
        *records: Payload | tuple[Payload, Payload],
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Append records, each a value or a key and a value; texts are encoded as UTF-8.

        Keys choose the partition as Java's producer does; records without a key are distributed.
        Raises ApiError if the topic does not exist or the broker rejects a record.
        """
        now_ms = time.time_ns() // 1_000_000
        with self.admin() as brokers:
            numbers = list(range(len(topics.describe_topic(brokers, topic).partitions)))
            batches: dict[int, list[Record]] = defaultdict(list)
            for index, record in enumerate(records):
                key, value = map(_bytes, record if isinstance(record, tuple) else (None, record))
                if partition is not None:
                    number = partition
                elif key is None:
                    number = numbers[index % len(numbers)]
                else:
                    number = murmur2_partition(key, numbers)
                batches[number].append(Record(key, value, tuple(headers), now_ms))
            for number, rows in batches.items():
                append_batch(brokers, topic, number, rows)

    def records(
        self, topic: str, *, count: int | None = None, timeout_seconds: float = 30.0
    ) -> list[ConsumedRecord]:
        """Return the records of a topic, by partition and offset; waits until there are `count`.

        Records of open and aborted transactions are left out. Raises OttlaError if there are fewer
        than `count` after the timeout.
        """
        with self.admin() as brokers:
            size = len(topics.describe_topic(brokers, topic).partitions)
            keys = [(topic, number) for number in range(size)]
            starts = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.EARLIEST))
        deadline = time.monotonic() + timeout_seconds
        rows: list[ConsumedRecord] = []
        unread = set(keys)
        with RecordConsumer(self.plain_bootstrap) as consumer:
            consumer.assign({key: starts[key].offset for key in keys})
            while unread or len(rows) < (count or 0):
                if time.monotonic() > deadline:
                    raise OttlaError(
                        f"{topic} has {len(rows)} records after {timeout_seconds:g} s"
                        + ("." if count is None else f", not {count}.")
                    )
                for event in consumer.poll(_POLL_SECONDS, limit=_READ_MAX):
                    if isinstance(event, EndOfPartition):
                        unread.discard((event.topic, event.partition))
                    else:
                        rows.append(event)
        return sorted(rows, key=lambda row: (row.partition, row.offset))

    def wait_for_group(
        self,
        group_id: str,
        *,
        members: int = 1,
        is_caught_up: bool = False,
        timeout_seconds: float = 30.0,
    ) -> Group:
        """Return a group when it is stable with this number of members.

        With `is_caught_up`, it has also committed the end of each assigned partition. Raises
        OttlaError after the timeout.
        """
        with self.admin() as brokers:

            def look() -> Group | None:
                group = _described(brokers, group_id)
                if group is None or group.state != ("Stable" if members else "Empty"):
                    return None
                if len(group.members) != members:
                    return None
                return group if not is_caught_up or _is_caught_up(brokers, group) else None

            lack = f"group {group_id!r} is not stable with {members} members"
            return found(look, lack, timeout_seconds)


def _bytes(payload: Payload) -> bytes | None:
    return payload.encode() if isinstance(payload, str) else payload


def _described(brokers: Brokers, group_id: str) -> Group | None:
    try:
        return groups.describe_group(brokers, group_id)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None


def _is_caught_up(brokers: Brokers, group: Group) -> bool:
    """Return True if the group has committed the end of all its partitions."""
    committed = offsets.committed_offsets(brokers, group.group_id)
    assigned = {key for member in group.members for key in member.assignment}
    keys = assigned or set(committed)
    ends = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.LATEST))
    return bool(keys) and all(
        not ends[key].offset or (key in committed and committed[key].offset >= ends[key].offset)
        for key in keys
    )
