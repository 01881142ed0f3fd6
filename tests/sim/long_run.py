"""A simulated cluster that runs for many hours of virtual time, with a fault now and then.

    python -m tests.sim.long_run 24 [SEED]     # hours; prints a row for each hour, and the problems

Three brokers serve producers, transactions, groups and readers; segments roll, old records are
deleted, logs are compacted; offsets, producer ids, transactional ids and groups expire after an
hour. At the end of each hour the cluster recovers, a checker judges the hour's history, and all
tables are measured: a table that still grows when everything has begun to expire is a leak.

Not done: delegation tokens, because simulated listeners have no authentication.
"""

import asyncio
import gc
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.testing.checkers.kafka import ClusterHistory, Polled, acknowledge, check
from ottla.testing.sim.cluster.brokers import SimCluster
from ottla.testing.sim.cluster.clients import (
    GROUP,
    ClusterClient,
    Refused,
    Unavailable,
)
from ottla.testing.sim.cluster.clients import check as check_code
from ottla.testing.sim.cluster.consumers import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    end_offset,
    fetch_records,
)
from ottla.testing.sim.cluster.invariants import Invariants
from ottla.testing.sim.cluster.nemesis import Nemesis
from ottla.testing.sim.cluster.producers import (
    ACKS_ALL,
    Identity,
    batch_of,
    produce_request,
    produced,
)
from ottla.testing.sim.cluster.replicas import divergences
from ottla.testing.sim.cluster.scenario import Fault
from ottla.testing.sim.cluster.transactions import TransactionalProducer
from ottla.testing.sim.cluster.workers import JOINT, STRICT, Work
from ottla.testing.sim.files import SimFile
from ottla.testing.sim.world import World
from ottla.wire.messages import (
    consumer_group_heartbeat,
    create_topics,
    delete_topics,
    init_producer_id,
    offset_commit,
    produce,
)
from ottla.wire.records.records import Record, encode_batch

HOUR_SECONDS = 3600.0
PARTITIONS = 2
COMPACTED = "keys"
KEYS = 20
ROUND_SECONDS = 60.0
# Tables that may grow to this size: a cache that is emptied then, and the epochs of compacted logs.
# Retention does not cut those: each election adds an entry, in Apache Kafka, too.
GROWING_MAX = {
    "server.fetch.shortcut.FetchShortcut._known": 10_000,
    "storage.files.epochs.LeaderEpochs.entries": 1_000,
}
# The faults of an hour end before its last quarter.
_FAULTS_UNTIL = 0.7
_RECOVERY_SECONDS = 120.0
# Everything expires after an hour, and what expires is looked for every ten minutes.
WARM_HOURS = 3
SHORT_MS, LIFE_MS = str(600_000), str(3_600_000)
SETTINGS = {
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    # A request that waits for records costs nothing; the ISR is checked as often as by default.
    "replica.fetch.wait.max.ms": "10000",
    "log.retention.check.interval.ms": SHORT_MS,
    "log.cleaner.backoff.ms": SHORT_MS,
    "log.cleaner.delete.retention.ms": LIFE_MS,
    # The smallest segment has a megabyte: they roll by time.
    "log.roll.ms": SHORT_MS,
    "offsets.retention.minutes": "60",
    "offsets.retention.check.interval.ms": SHORT_MS,
    "transactional.id.expiration.ms": LIFE_MS,
    "transaction.remove.expired.transaction.cleanup.interval.ms": SHORT_MS,
    "producer.id.expiration.ms": LIFE_MS,
    "producer.id.expiration.check.interval.ms": SHORT_MS,
    "log.stray.retention.ms": LIFE_MS,
}
TOPICS: Mapping[str, Mapping[str, str]] = {
    STRICT: {"retention.ms": str(2 * 3_600_000)},
    JOINT: {"retention.ms": str(2 * 3_600_000)},
    COMPACTED: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
}
_COMPACTED_TOPICS = (COMPACTED, "__consumer_offsets", "__transaction_state")
# Kills hide a leak, because a new process begins with empty tables: they come first.
_KILLS_UNTIL_HOUR = 6
_ENDINGS = ("kill", "stop", "power_loss")
_OTHER_FAULTS = ("pause", "isolate", "expire_session", "reset_connections", "slow_network",
                 "leave_ensemble", "leave_followers")  # fmt: skip
_FAULT_SECONDS = 20.0


@dataclass
class Hour:
    """The measurements at the end of one hour."""

    number: int
    acknowledged: int = 0
    faults: int = 0
    objects: int = 0
    open_files: int = 0
    disk_bytes: int = 0
    tree_nodes: int = 0
    cpu_seconds: float = 0.0
    tables: Mapping[str, int] = field(default_factory=dict)

    def sizes(self) -> dict[str, int]:
        """Return every size by name."""
        names = ("objects", "open_files", "disk_bytes", "tree_nodes")
        return {name: getattr(self, name) for name in names} | dict(self.tables)


@dataclass
class LongRun:
    """The result: `problems` are the violations, each as one line."""

    hours: list[Hour] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def run_hours(count: int, seed: int = 1) -> LongRun:
    """Run a cluster for some hours of virtual time."""
    result = LongRun()
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with World(seed, keep_trace=0) as world:
            try:
                world.run(_Cluster(world, result).run(count))
            except (AssertionError, TimeoutError, OttlaError) as error:
                result.problems.append(f"hour {len(result.hours)}: {type(error).__name__}: {error}")
    finally:
        gc.collect()
        if was_enabled:
            gc.enable()
    result.problems += growing(result.hours)
    return result


def growing(hours: Sequence[Hour]) -> list[str]:
    """Return the tables that are larger in the last third of the hours than in the first.

    The hours in which nothing has expired yet do not count.
    """
    steady = hours[WARM_HOURS:]
    third = len(steady) // 3
    if third == 0:
        return []
    problems = []
    for name in sorted(steady[-1].sizes()):
        early = max(hour.sizes().get(name, 0) for hour in steady[:third])
        late = min(hour.sizes().get(name, 0) for hour in steady[-third:])
        if late > max(1.25 * early + 30, GROWING_MAX.get(name, 0)):
            problems.append(f"{name} grows: {early} and later {late}")
    return problems


class _Cluster:
    def __init__(self, world: World, result: LongRun) -> None:
        self._world = world
        self._result = result
        self._cluster = SimCluster(world, 3, SETTINGS)
        self._rng = world.stream("long run")
        self._client = ClusterClient(self._cluster, "client")
        self._work = Work(self._cluster, PARTITIONS)
        self._invariants = Invariants(self._cluster)
        self._positions: dict[tuple[str, int], int] = {}
        self._last_of: dict[str, str] = {}
        self._rounds = 0
        self._fixed = [TransactionalProducer(self._work, f"fixed-{n}") for n in range(2)]
        self._sequence = 0
        self._identity: Identity | None = None

    async def run(self, hours: int) -> None:
        """Run the hours, and compare the replicas at the end."""
        for broker_id in self._cluster.ids:
            self._cluster.keep_running(broker_id)
        await self._cluster.until(lambda: not self._cluster.problems())
        await self._create(TOPICS)
        for producer in self._fixed:
            await self._repeat(producer.initialize)
        watch = asyncio.ensure_future(self._watch())
        try:
            for number in range(hours):
                await self._hour(number)
            differences = divergences(self._cluster, _COMPACTED_TOPICS)
            self._result.problems += [f"replicas differ: {text}" for text in differences]
        finally:
            watch.cancel()
            self._cluster.close()
        self._result.problems += self._invariants.problems + self._work.complaints
        failures: Counter[str] = Counter(self._cluster.task_failures)
        for node in self._cluster.nodes.values():
            failures += node.task_failures
        self._result.problems += [f"unexpected error in a task: {kind}" for kind in failures]

    async def _watch(self) -> None:
        while True:
            self._invariants.look()
            for node in self._cluster.nodes.values():
                # Three of four steps would be theirs, and code takes no virtual time.
                for watch in node.loop_watches:
                    watch.stop()
            await self._cluster.clock.sleep(5)

    # -- an hour ------------------------------------------------------------------------------

    async def _hour(self, number: int) -> None:
        began, begins = time.process_time(), self._cluster.clock.monotonic()
        nemesis = Nemesis(
            self._cluster, self._world.stream(f"nemesis {number}"), loses_unflushed=True
        )
        nemesis.start([self._fault(number)])
        await self._create({f"hourly-{number}": {}})
        while self._cluster.clock.monotonic() < begins + HOUR_SECONDS - _RECOVERY_SECONDS:
            await self._round()
            await self._cluster.clock.sleep(ROUND_SECONDS)
        nemesis.heal()
        nemesis.raise_failures()
        await self._delete(f"hourly-{number}")
        await self._cluster.until(lambda: not self._cluster.problems(), _RECOVERY_SECONDS)
        acknowledged = await self._judge(number)
        remaining = begins + HOUR_SECONDS - self._cluster.clock.monotonic()
        await self._cluster.clock.sleep(max(0.0, remaining))
        hour = self._measure(number)
        hour.acknowledged = acknowledged
        hour.faults = sum(nemesis.applied.values())
        hour.cpu_seconds = time.process_time() - began
        self._result.hours.append(hour)

    def _fault(self, number: int) -> Fault:
        kinds = _OTHER_FAULTS + (_ENDINGS if number < _KILLS_UNTIL_HOUR else ())
        at = HOUR_SECONDS * _FAULTS_UNTIL * self._rng.below(1000) / 1000
        kind = kinds[self._rng.below(len(kinds))]
        target = "controller" if self._rng.below(3) == 0 else f"broker {1 + self._rng.below(3)}"
        return Fault(at, kind, target, _FAULT_SECONDS, self._rng.below(2**31))

    async def _judge(self, number: int) -> int:
        """Judge the history of this hour, and begin the next; return the acknowledged records."""
        history = self._work.history
        for topic in (STRICT, JOINT):
            for partition in range(PARTITIONS):
                begin = self._positions.get((topic, partition), 0)
                for level in (READ_UNCOMMITTED, READ_COMMITTED):
                    final, end = await self._read(topic, partition, begin, level)
                    history.final += final
                    self._positions[topic, partition] = end
        await self._check_keys()
        self._result.problems += [f"hour {number}: {text}" for text in check(history)]
        count = sum(write.offset >= 0 for write in history.writes)
        self._work.history = ClusterHistory()
        return count

    async def _read(
        self, topic: str, partition: int, begin: int, level: int
    ) -> tuple[list[Polled], int]:
        end = await self._repeat(lambda: end_offset(self._client, topic, partition, level))
        position, polled = begin, []
        while position < end:
            at = position
            fetched = await self._repeat(
                lambda: fetch_records(self._client, topic, partition, at, level)  # noqa: B023
            )
            polled += [
                Polled("final", 0, (topic, partition), offset, value, level == READ_COMMITTED)
                for offset, value in fetched.records
            ]
            position = fetched.position
        return polled, position

    async def _check_keys(self) -> None:
        """Check that the compacted topic has the last value of every key."""
        polled, _ = await self._read(COMPACTED, 0, 0, READ_UNCOMMITTED)
        found = {str(item.value).partition("=")[0]: str(item.value) for item in polled}
        for key, value in self._last_of.items():
            if found.get(key) != value:
                self._result.problems.append(f"key {key} has {found.get(key)}, not {value}")

    # -- a round of the clients ---------------------------------------------------------------

    async def _round(self) -> None:
        number = self._rounds
        self._rounds += 1
        await self._write(number)
        await self._write_key(number)
        await self._repeat(self._fixed[number % len(self._fixed)].transact)
        if number % 4 == 0:
            await self._transact_once(number)
            await self._join_once(number)
        await self._commit_offset("steady", number)
        await self._commit_offset(f"once-{number}", number)

    async def _write(self, number: int) -> None:
        """Write with a new producer id: the former ones expire."""
        values = [f"v{number}.{index}" for index in range(3)]
        partition = number % PARTITIONS
        identity = await self._repeat(self._new_identity)
        writes = self._work.history.send("writer", (STRICT, partition), values)
        data = batch_of(self._client, values, identity, 0)
        acknowledge(writes, await self._produce(STRICT, partition, data))

    async def _write_key(self, number: int) -> None:
        key = f"k{self._rng.below(KEYS)}"
        value = f"{key}={number}"
        if self._identity is None:
            self._identity, self._sequence = await self._repeat(self._new_identity), 0
        record = Record(key.encode(), value.encode(), timestamp=self._client.clock.time_ms())
        data = encode_batch(
            [record],
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=self._sequence,
        )
        await self._produce(COMPACTED, 0, bytes(data))
        self._sequence += 1
        self._last_of[key] = value

    async def _new_identity(self) -> Identity:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000
        )
        response = await self._client.ask_any(request, 4, init_producer_id.InitProducerIdResponse)
        check_code(response.error_code)
        return Identity(response.producer_id, response.producer_epoch)

    async def _produce(self, topic: str, partition: int, data: bytes) -> int:
        """Write a batch, again until it is acknowledged; return its offset, -1 if unknown."""
        request = produce_request(topic, partition, data, ACKS_ALL)

        async def send() -> int:
            response = await self._client.ask_leader(
                topic, partition, request, 9, produce.ProduceResponse
            )
            result = produced(response)
            if result.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return -1
            try:
                check_code(result.error_code)
            except Unavailable:
                self._client.forget_leader(topic, partition)
                raise
            return result.base_offset

        return await self._repeat(send)

    async def _transact_once(self, number: int) -> None:
        """Run a transaction of a transactional id that is never used again."""
        producer = TransactionalProducer(self._work, f"single-{number}")
        await self._repeat(producer.initialize)
        await producer.transact()
        producer.client.close()

    async def _join_once(self, number: int) -> None:
        """Join a group of the consumer protocol (KIP-848), and leave it."""
        group, member = f"members-{number}", f"member-{number}"
        for epoch in (0, -1):
            request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id=member,
                member_epoch=epoch,
                rebalance_timeout_ms=60_000 if epoch == 0 else -1,
                subscribed_topic_names=[STRICT] if epoch == 0 else None,
                topic_partitions=[] if epoch == 0 else None,
            )

            async def beat(
                request: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest = request,
            ) -> None:
                response = await self._client.ask_coordinator(
                    GROUP, group, request, 1,
                    consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
                )  # fmt: skip
                self._check_group(group, response.error_code)

            try:
                await self._repeat(beat)
            except Refused as error:
                # A repeated request to leave finds no member.
                if error.error not in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
                    raise

    async def _commit_offset(self, group: str, offset: int) -> None:
        requested = offset_commit.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = offset_commit.OffsetCommitRequest(
            group_id=group,
            topics=[offset_commit.OffsetCommitRequestTopic(name=STRICT, partitions=[requested])],
        )

        async def commit() -> None:
            response = await self._client.ask_coordinator(
                GROUP, group, request, 8, offset_commit.OffsetCommitResponse
            )
            self._check_group(group, response.topics[0].partitions[0].error_code)

        await self._repeat(commit)
        self._client.forget_coordinator(GROUP, group)

    def _check_group(self, group: str, code: int) -> None:
        try:
            check_code(code)
        except Unavailable:
            self._client.forget_coordinator(GROUP, group)
            raise

    async def _create(self, topics: Mapping[str, Mapping[str, str]]) -> None:
        request = create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(
                    name=name,
                    num_partitions=PARTITIONS,
                    replication_factor=3,
                    configs=[
                        create_topics.CreatableTopicConfig(name=key, value=value)
                        for key, value in configs.items()
                    ],
                )
                for name, configs in topics.items()
            ],
            timeout_ms=3000,
        )

        async def create() -> None:
            response = await self._client.ask_any(request, 7, create_topics.CreateTopicsResponse)
            for topic in response.topics:
                if topic.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    check_code(topic.error_code)

        await self._repeat(create)

    async def _delete(self, name: str) -> None:
        request = delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name=name)], timeout_ms=3000
        )

        async def delete() -> bool:
            response = await self._client.ask_any(request, 6, delete_topics.DeleteTopicsResponse)
            code = response.responses[0].error_code
            # A deletion whose response was lost is found to be done.
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return True
            check_code(code)
            return True

        await self._repeat(delete)

    async def _repeat(self, step: Any) -> Any:
        """Repeat a step until the cluster is available."""
        while True:
            try:
                return await step()
            except Unavailable:
                await self._client.clock.sleep(1)

    # -- sizes --------------------------------------------------------------------------------

    def _measure(self, number: int) -> Hour:
        gc.collect()
        objects = gc.get_objects()
        tables = {name: size for name, size in sorted(_tables(objects).items()) if size > 0}
        return Hour(
            number,
            objects=len(objects),
            open_files=sum(isinstance(item, SimFile) for item in objects),
            disk_bytes=sum(
                len(stored.content)
                for broker_id in self._cluster.ids
                for stored in self._cluster.machine(broker_id).files.disk.root.files()
            ),
            tree_nodes=self._cluster.coordination.tree.size().nodes,
            tables=tables,
        )


def _tables(objects: Sequence[object]) -> Counter[str]:
    """Return the elements of all collections that objects of the broker have as attributes."""
    tables: Counter[str] = Counter()
    for item in objects:
        kind = type(item)
        module = kind.__module__
        if not module.startswith("ottla.") or module.startswith(("ottla.testing", "ottla.wire")):
            continue
        for name, value in _attributes(item):
            if isinstance(value, dict | list | set | tuple) or type(value).__name__ in _SIZED:
                tables[f"{module.removeprefix('ottla.')}.{kind.__name__}.{name}"] += len(value)
    return tables


_SIZED = frozenset({"deque", "Counter", "OrderedDict", "defaultdict", "bytearray"})


def _attributes(item: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(item, "__dict__", {}).items()
    for kind in type(item).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(item, name):
                yield name, getattr(item, name)


def main(arguments: Sequence[str]) -> int:
    """Run the hours, and print the sizes of each."""
    logging.disable(logging.CRITICAL)
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    result = run_hours(int(arguments[0]), seed)
    lines = [
        "| hour | acknowledged records | faults | objects | open files | bytes on disks | nodes of the tree"
        " | elements of all tables | CPU s |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(
            f"| {hour.number} | {hour.acknowledged} | {hour.faults} | {hour.objects:,}"
            f" | {hour.open_files} | {hour.disk_bytes:,} | {hour.tree_nodes}"
            f" | {sum(hour.tables.values()):,} | {hour.cpu_seconds:.1f} |"
            for hour in result.hours
        ),
        "",
        *(result.problems or ["No problem."]),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(result.problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
