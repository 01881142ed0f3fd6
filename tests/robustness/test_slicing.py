"""Long work yields to the event loop; steps are counted, so that a test fails without slicing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.rng import SeededRng
from ottla.base.slices import SLICE_SECONDS, Slices
from ottla.cluster.image import BrokerImage, ClusterImage
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.controller import state
from ottla.controller.planning import creation
from ottla.controller.planning.notices import Fence
from ottla.controller.planning.requests import PartitionsRequest, TopicRequest
from ottla.storage.cleaner.cleaning import CleanerPass, survey
from ottla.storage.cleaner.compaction import NewestOffsets
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.testing.sim.files import SimFileSystem
from ottla.wire.records.batch import parse_header
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.logs import NODE, LogsBroker, batch
from tests.robustness.slicing import StepClock
from tests.unit.controller.conftest import World as ControllerWorld
from tests.unit.storage.compacted import Compacted
from tests.unit.storage.world import patched

pytestmark = pytest.mark.alone

T = TypeVar("T")

FENCE = Fence(controller_id=NODE, controller_epoch=2, broker_epoch=10)
# The number of steps of a millisecond that fit into a slice, and the one that ends it.
STEPS_MAX = round(SLICE_SECONDS * 1000) + 1


async def test_a_slice_ends_by_time() -> None:
    """The event loop runs after a few milliseconds, however many steps there are."""
    clock = StepClock()
    slices = Slices(clock)
    paused = [await slices.pause() for _ in range(100)]
    assert paused.count(True) == len(clock.slices) >= 100 // STEPS_MAX
    longest = max(len(run) for run in "".join("x "[client] for client in paused).split())
    assert longest < STEPS_MAX


async def test_creating_and_deleting_many_logs_is_sliced() -> None:
    """The broker's own part of creating and deleting a topic with many partitions is sliced."""
    broker = LogsBroker()
    clock = StepClock(lambda: len(broker.replicas.partitions()))
    created = broker.create("t", partitions=200)
    keys = [("t", number) for number in range(200)]
    broker.replicas.stop_replicas(1, keys, delete=True)
    broker.clock = clock
    port = broker.receive_notices()
    codes = await port.apply_leader_and_isr(FENCE, created.states(is_new=True))
    assert set(codes.values()) == {ErrorCode.NONE}
    assert len(codes) == 200
    assert max(clock.slices) <= STEPS_MAX
    assert len(clock.slices) >= 200 // STEPS_MAX
    clock.slices.clear()
    codes = await port.stop_replicas(FENCE, keys, delete=True)
    assert set(codes.values()) == {ErrorCode.NONE}
    assert min(clock.slices) >= -STEPS_MAX
    assert not broker.replicas.partitions()
    await broker.tasks.close()


async def test_deletions_become_durable_off_the_loop() -> None:
    """The broker reports a deletion when no crash can undo it, and serves clients until then."""
    broker = LogsBroker()
    broker.create("t", partitions=3)
    files, synced, background = broker.files, [], []
    sync_directory, in_background = files.sync_directory, files.in_background

    def sync(path: str) -> None:
        synced.append((path, bool(background)))
        sync_directory(path)

    def marked(work: Callable[[], T]) -> Awaitable[T]:
        def do() -> T:
            background.append(1)
            try:
                return work()
            finally:
                background.pop()

        return in_background(do)

    port = broker.receive_notices()
    with patched(files, "sync_directory", sync), patched(files, "in_background", marked):
        for number in range(2):
            codes = await port.stop_replicas(FENCE, [("t", number)], delete=True)
            assert set(codes.values()) == {ErrorCode.NONE}
        assert synced == [("/data", True)] * 2
        await broker.directories.settle_deletions_in_background()
        assert len(synced) == 2
    await broker.tasks.close()


def test_a_large_topic_is_written_in_parts() -> None:
    """No write to the coordination tree blocks the loop or exceeds ZooKeeper's limit."""
    now = creation.Environment(
        image=ClusterImage().with_brokers([BrokerImage(NODE, "b", 9092)]),
        options=BROKER_OPTIONS.parse({}),
        rng=SeededRng(1),
    )
    count = 3 * creation.PARTITIONS_AT_ONCE + 1
    new = creation.plan_topic(TopicRequest("t", count, 1), (), now)
    writes = [
        creation.write_topic(new, 1),
        *creation.write_rest(new.topic, creation.PARTITIONS_AT_ONCE, 1),
    ]
    sizes = [len(write.operations) for write in writes]
    assert max(sizes) <= 2 * creation.PARTITIONS_AT_ONCE + 3
    assert sum(sizes) == 2 * count + 3
    paths = {operation.path for write in writes for operation in write.operations}
    assert len(paths) == sum(sizes)


class NotingFiles(SimFileSystem):
    """Records file operations that block the event loop, outside of `in_background`."""

    def __init__(self) -> None:
        super().__init__()
        self.is_off_loop = False
        self.on_loop: list[str] = []

    def in_background(self, work: Callable[[], T]) -> Awaitable[T]:
        def marked() -> T:
            self.is_off_loop = True
            try:
                return work()
            finally:
                self.is_off_loop = False

        return super().in_background(marked)

    def _note(self, what: str, path: str) -> None:
        if not self.is_off_loop:
            self.on_loop.append(f"{what} {path}")

    def remove(self, path: str) -> None:
        self._note("remove", path)
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self._note("remove_tree", path)
        super().remove_tree(path)

    def replace(self, path: str, data: bytes) -> None:
        self._note("replace", path)
        super().replace(path, data)


def directories_of(
    files: SimFileSystem, clock: StepClock, count: int, config: LogConfig
) -> LogDirectories:
    """Open a log directory with many logs."""
    directories = LogDirectories.open(
        ["/data"], files=files, clock=clock, rng=SeededRng(1), broker_id=1, default_config=config
    )
    for number in range(count):
        directories.create("t", number, bytes(16), config)
    return directories


async def test_upkeep_of_many_logs_is_sliced() -> None:
    """Flushes, deletions, retention and expiry of producers, every second over all logs, are
    sliced.
    """
    clock = StepClock()
    directories = directories_of(SimFileSystem(), clock, 200, LogConfig())
    await directories.upkeep.tick_retention()
    assert len(clock.slices) >= 200 // STEPS_MAX
    clock.slices.clear()
    await directories.upkeep.maintain()
    # Two passes over the logs, when nothing else is due.
    assert len(clock.slices) >= 2 * 200 // STEPS_MAX
    directories.close()


async def test_large_files_are_removed_and_checkpoints_written_off_the_loop() -> None:
    """Removing a large file, or waiting for a device, takes longer than clients may wait."""
    files, clock = NotingFiles(), StepClock()
    config = LogConfig(segment_bytes=1000, retention_bytes=1, file_delete_delay_ms=0)
    directories = directories_of(files, clock, 2, config)
    for number in (0, 1):
        log = directories.get("t", number)
        assert log is not None
        for _ in range(20):
            log.append_as_leader(batch(bytes(200)), 0)
        log.durability.flush()
        log.high_watermark = log.log_end_offset
    assert await directories.upkeep.tick_retention() > 10
    directories.delete("t", 1)
    directories.settle_deletions()
    before = sum(name.endswith(".deleted") for name in files.list("/data/t-0"))
    files.on_loop.clear()
    await directories.upkeep.maintain()
    await directories.store_high_watermarks_in_background({("t", 0): 7})
    after = sum(name.endswith(".deleted") for name in files.list("/data/t-0"))
    assert before > 10 > after == 0
    assert [name for name in files.list("/data") if name.startswith("t-")] == ["t-0"]
    assert not files.on_loop
    directories.close()


class CountingClock(StepClock):
    """Counts how often the event loop could run."""

    @property
    def turns(self) -> int:
        return len(self.slices)


async def test_controller_yields_to_the_loop_for_large_topics() -> None:
    """The controller yields between planning, encoding, writing and notifying; not for small
    topics.
    """
    world = ControllerWorld()
    clock = CountingClock()
    world.clock = cast(Any, clock)
    controller = await world.start(1)
    before = clock.turns
    await controller.create_topics([TopicRequest("small", 10, 1)])
    assert clock.turns == before
    await controller.create_topics([TopicRequest("large", creation.PARTITIONS_AT_ONCE + 1, 1)])
    assert clock.turns >= before + 3
    # Two nodes of each partition are read, some at a time: other events are handled in between.
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.ensure_future(count_turns())
    (outcome,) = await controller.delete_topics(["large"])
    counter.cancel()
    assert outcome.error is None
    assert turns >= 2 * creation.PARTITIONS_AT_ONCE // state.READS_MAX
    await world.close()


async def test_thousands_of_partitions_are_created_in_slices() -> None:
    """Partitions of new and growing topics are created in slices; validation writes nothing."""
    world = ControllerWorld()
    clock = CountingClock()
    world.clock = cast(Any, clock)
    controller = await world.start(1)
    before = clock.turns
    count = 4000
    (future,) = await controller.create_topics([TopicRequest("many", count, 1)], validate_only=True)
    assert future.partitions == count
    assert clock.turns > before
    await controller.create_topics([TopicRequest("small", 1, 1)])
    before = clock.turns
    more = PartitionsRequest("small", count)
    (outcome,) = await controller.create_partitions([more], validate_only=True)
    assert outcome.error is None
    assert clock.turns > before
    await world.close()


def test_a_slice_of_cleaning_ends_by_time() -> None:
    """A slice ends although the estimated cost of its steps is low: each takes a millisecond."""
    compacted = Compacted(segment_bytes=4000)
    for number in range(300):
        compacted.append((b"%d" % (number % 7), b"v"))
    log = compacted.log
    log.rolling.roll()
    log.durability.flush()
    clock = StepClock()
    work = CleanerPass(compacted.files, clock, log, survey(log, 0), 1 << 20)
    assert len(list(work.read_keys())) >= 300 // 25
    segments = [segment for group in work.groups() for segment in group]
    assert len(list(work.rewrite(segments))) >= 300 // 25


def test_map_of_keys_grows_in_parts() -> None:
    """Growing or freeing a dictionary of a million keys would block the interpreter for tens of
    milliseconds.
    """
    offsets = NewestOffsets(0, 1 << 30)
    for start in range(0, 20_000, 1000):
        records = [Record(b"key-%d" % at, None) for at in range(start, start + 1000)]
        data = encode_batch(records, base_offset=start)
        offsets.note(data, parse_header(data))
    assert len(offsets) == 20_000
    assert offsets.is_newest(b"key-7", 7) and not offsets.is_newest(b"key-7", 6)
    assert max(map(len, offsets._parts)) < 20_000 / len(offsets._parts) * 2
    offsets.forget()
    assert len(offsets) == 0
