"""The stage of one scenario: a running cluster, clients for it, and the events that a reader sees.

Consumers of a stage send heartbeats often, so that a group notices changes at once. A killed
broker's session ends at once, too: no scenario waits for a timeout of the cluster.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ottla.base.buffers import Buffer
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.loading import deferred_module
from ottla.client.admin import groups
from ottla.client.admin.configs import Resource, ResourceType, describe_config
from ottla.client.records import ConsumerRecord, RecordMetadata, TopicPartition
from ottla.cluster.image import NO_LEADER
from ottla.learn import observation
from ottla.learn.events import Emit, GroupView, PartitionView, Step, TableView, Text
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

# The list of lessons needs neither a broker nor clients of records.
if TYPE_CHECKING:
    from ottla import client
    from ottla.testing.cluster import Cluster
else:
    client = deferred_module("ottla.client")

_PATIENCE_S = 20.0
_POLL_S = 0.02
# The last version of Produce with topic names.
_WITH_NAMES = 12
_PRODUCER = {"linger_ms": 0, "enable_idempotence": False, "reconnect_backoff_max_ms": 100}
_CONSUMER = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 50,
    "reconnect_backoff_max_ms": 100,
    "fetch_error_backoff_ms": 10,
}


class Stage:
    """The cluster and the clients of one scenario; `facts` collects what it observed."""

    def __init__(self, name: str, cluster: "Cluster", emit: Emit, resources: ExitStack) -> None:
        self.name = name
        self.cluster = cluster
        self.facts: dict[str, Any] = {}
        self._emit = emit
        self._resources = resources

    # -- for the reader ---------------------------------------------------------------------------

    def say(self, en: str, zh: str, **facts: Any) -> None:
        """Show a sentence; `facts` replace the names in its braces, and are kept."""
        self.facts.update(facts)
        self._emit(Step(Text(en, zh), dict(self.facts)))

    def show(self, topic: str, *partitions: int) -> PartitionView:
        """Show partitions of a topic, by default 0, as they are now; return the last one."""
        for partition in partitions or (0,):
            view = observation.partition_view(self.cluster, topic, partition)
            self._emit(view)
        return view

    def show_group(self, group: str, names: Mapping[str, str] | None = None) -> GroupView:
        """Show the members of a group with their partitions, and the committed offsets."""
        view = observation.group_view(self.cluster, group, names)
        self._emit(view)
        return view

    def table(self, title: Text, columns: Text, rows: Iterable[tuple[Any, ...]]) -> None:
        """Show a table; `columns` are separated by commas."""
        pairs = zip(columns.en.split(","), columns.zh.split(","), strict=True)
        self._emit(TableView(title, tuple(Text(*pair) for pair in pairs), tuple(rows)))

    # -- topics and brokers -----------------------------------------------------------------------

    def topic(
        self, noun: str = "", *, partitions: int = 1, replicas: int = 1, **config: str
    ) -> str:
        """Create a topic of this scenario and return its name; options have Kafka's snake_case
        names.
        """
        name = f"{self.name}.{noun}" if noun else self.name
        options = {key.replace("_", "."): value for key, value in config.items()}
        self.cluster.create_topic(
            name, partitions=partitions, replication_factor=replicas, config=options
        )
        self.cluster.wait_in_sync(name)
        return name

    def topic_option(self, topic: str, name: str) -> str:
        """Return the effective value of an option of a topic, as the cluster describes it."""
        return self._option(Resource(ResourceType.TOPIC, topic), name)

    def broker_option(self, name: str) -> str:
        """Return the effective value of an option of a live broker."""
        broker = self.cluster.live_brokers[0]
        return self._option(Resource(ResourceType.BROKER, str(broker)), name)

    def broker_options(self) -> list[str]:
        """Return the names of all options of a live broker."""
        resource = Resource(ResourceType.BROKER, str(self.cluster.live_brokers[0]))
        with self.cluster.admin() as brokers:
            return [entry.name for entry in describe_config(brokers, resource)]

    def _option(self, resource: Resource, name: str) -> str:
        with self.cluster.admin() as brokers:
            (entry,) = describe_config(brokers, resource, names=[name])
        return entry.value or ""

    def kill(self, broker: int) -> None:
        """Kill a broker, and let the others notice at once."""
        self.cluster.kill(broker)
        self.cluster.expire_session(broker)

    def await_leader_other_than(self, broker: int, topic: str, partition: int = 0) -> None:
        """Wait until another broker leads a partition, and all live brokers know that.

        A client that asked a broker with an older image would look for the old leader.
        """

        def has_changed() -> bool:
            images = [
                self.cluster.node(number).broker.image.partition(topic, partition)
                for number in self.cluster.live_brokers
            ]
            leaders = {NO_LEADER if image is None else image.leader for image in images}
            return len(leaders) == 1 and not leaders & {NO_LEADER, broker}

        self.until(has_changed, "another broker leads")

    def evict(self, group: str) -> None:
        """Remove the members of a group at once, as after a crash and the session timeout."""
        with self.cluster.admin() as brokers:
            groups.remove_members(brokers, groups.describe_group(brokers, group))

    def until(self, condition: Callable[[], bool], description: str) -> None:
        """Wait until a condition is true; OttlaError names it after 20 s."""
        deadline = time.monotonic() + _PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise OttlaError(f"this did not happen within {_PATIENCE_S:g} s: {description}")
            time.sleep(_POLL_S / 4)

    # -- clients ----------------------------------------------------------------------------------

    def producer(self, **settings: Any) -> "client.Producer":
        """Return a producer without idempotence, unless `settings` differ; it is closed at the end."""
        merged = {"bootstrap_servers": self.cluster.bootstrap, **_PRODUCER, **settings}
        return self._resources.enter_context(client.Producer(merged))

    def send(self, topic: str, *values: str, **settings: Any) -> list[RecordMetadata]:
        """Send values to partition 0 and wait; return their positions."""
        merged = {"bootstrap_servers": self.cluster.bootstrap, **_PRODUCER, **settings}
        with client.Producer(merged) as opened:
            return [opened.send(topic, value, partition=0).result(20) for value in values]

    def send_batch(self, topic: str, batch: Buffer, *, acks: int = -1) -> ErrorCode:
        """Send one batch as it is to partition 0, and return the leader's response."""
        rows = [PartitionProduceData(index=0, records=bytes(batch))]
        request = ProduceRequest(
            acks=acks,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, partition_data=rows)],
        )
        with self.cluster.admin() as brokers:
            response = brokers.ask_node(
                self.cluster.leader(topic), request, ProduceResponse, max_version=_WITH_NAMES
            )
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    def consumer(self, *topics: str, name: str = "", **settings: Any) -> "client.Consumer":
        """Return a consumer that reads from the earliest record; it is closed at the end."""
        merged = {"bootstrap_servers": self.cluster.bootstrap, **_CONSUMER, **settings}
        if "group_id" not in merged:
            merged.pop("heartbeat_interval_ms", None)
        if name:
            merged["client_id"] = name
        listener = merged.pop("listener", None)
        opened = client.Consumer(*topics, listener=listener, **merged)
        return self._resources.enter_context(opened)

    def read(self, topic: str, partitions: int = 1, **settings: Any) -> list[ConsumerRecord]:
        """Return the records that a consumer can read now."""
        keys = [TopicPartition(topic, number) for number in range(partitions)]
        reader = self.consumer(**settings)
        ends = reader.end_offsets(keys)
        reader.assign(dict.fromkeys(keys, 0))
        records: list[ConsumerRecord] = []

        def is_complete() -> bool:
            records.extend(reader.poll(_POLL_S))
            positions = reader.positions()
            return all(positions.get(key, 0) >= end for key, end in ends.items())

        self.until(is_complete, f"{topic} is read to its end")
        reader.close()
        return records

    def values(self, topic: str, partitions: int = 1, **settings: Any) -> list[str]:
        """Return the values that a consumer can read now."""
        return [record.value.decode() for record in self.read(topic, partitions, **settings)]

    def take(self, reader: "client.Consumer", count: int) -> list[ConsumerRecord]:
        """Poll until `count` records have arrived, and return them."""
        records: list[ConsumerRecord] = []

        def has_enough() -> bool:
            records.extend(reader.poll(_POLL_S, max_records=count - len(records)))
            return len(records) >= count

        self.until(has_enough, f"{count} records arrive")
        return records

    def settle(self, members: "Iterable[client.Consumer]", sizes: Iterable[int]) -> None:
        """Poll the members of a group until they own this many partitions, in any order."""
        crew, expected = list(members), sorted(sizes)

        def is_settled() -> bool:
            for member in crew:
                member.poll(_POLL_S / len(crew))
            return sorted(len(member.assignment) for member in crew) == expected

        self.until(is_settled, f"the members own {expected} partitions")
