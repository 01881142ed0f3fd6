"""Decide, append, replay, respond: a runtime whose shard stores a list of values."""

import asyncio
import itertools

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.hosted import RuntimeSettings
from ottla.coordinators.runtime import CoordinatorRuntime, Decision
from ottla.wire.records import batch, control
from ottla.wire.records.compression import CODECS
from ottla.wire.records.control import ControlType, EndTransactionMarker
from ottla.wire.records.records import Record, encode_batch

TOPIC = "__things"


class Things:
    """A shard with the values in the order of their replay."""

    def __init__(self, host):
        self.host = host
        self.values = []
        self.open = {}
        self.life = []

    def replay(self, record, producer_id=batch.NO_PRODUCER_ID):
        if record.value == b"bad":
            raise ApiError(ErrorCode.CORRUPT_MESSAGE)
        if producer_id == batch.NO_PRODUCER_ID:
            self.values.append(record.value.decode())
        else:
            self.open.setdefault(producer_id, []).append(record.value.decode())

    def end_transaction(self, producer_id, *, is_committed):
        removed = self.open.pop(producer_id, [])
        if is_committed:
            self.values.extend(removed)

    def on_loaded(self):
        self.life.append("loaded")

    def on_unloaded(self):
        self.life.append("unloaded")


def thing(value):
    return Record(key=b"k", value=value.encode(), timestamp=1)


def add(value):
    return lambda shard: Decision([thing(value)], f"added after {len(shard.values)}")


def look(shard):
    return Decision([], list(shard.values))


def refuse(code):
    return code.name


@pytest.fixture
def runtime(world):
    """A runtime over the world's partitions; commits time out after a second."""
    settings = RuntimeSettings(commit_timeout_ms=1000, load_bytes=200)
    return CoordinatorRuntime(
        TOPIC,
        Things,
        writer=world.partitions,
        clock=world.clock,
        tasks=world.tasks,
        settings=lambda: settings,
    )


def test_decision_is_appended_replayed_and_returned(world, runtime):
    """The response is computed before the append, and the next decision sees the record."""

    async def scenario():
        runtime.load(0, 1)
        assert runtime.decide(0, add("a"), refuse) == "added after 0"
        assert runtime.decide(0, add("b"), refuse) == "added after 1"
        assert runtime.decide(0, look, refuse) == ["a", "b"]
        assert [record.value for record in world.partitions.records(TOPIC, 0)] == [b"a", b"b"]

    world.loop.run(scenario())


def test_partition_of_another_broker_is_rejected(world, runtime):
    """Before and after leadership, the error is NOT_COORDINATOR."""

    async def scenario():
        assert runtime.decide(0, look, refuse) == "NOT_COORDINATOR"
        runtime.load(0, 1)
        runtime.unload(0)
        assert runtime.decide(0, look, refuse) == "NOT_COORDINATOR"
        assert runtime.find(0) is ErrorCode.NOT_COORDINATOR

    world.loop.run(scenario())


def test_response_waits_for_the_commit(world, runtime):
    """The state changes on append, but responses and reads wait for the commit."""

    async def scenario():
        runtime.load(0, 1)
        world.partitions.holds_commits = True
        response = runtime.decide(0, add("a"), refuse)
        seen = runtime.read(0, lambda shard: list(shard.values), refuse)
        await asyncio.sleep(0)
        assert not response.done()
        assert not seen.done()
        world.partitions.commit()
        assert await response == "added after 0"
        assert await seen == ["a"]
        assert runtime.read(0, lambda shard: len(shard.values), refuse) == 1

    world.loop.run(scenario())


def test_failed_append_changes_nothing(world, runtime):
    """An error of the append becomes the response, and nothing is replayed."""

    async def scenario():
        runtime.load(0, 1)
        world.partitions.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        assert runtime.decide(0, add("a"), refuse) == "NOT_ENOUGH_REPLICAS"
        world.partitions.refuses = None
        assert runtime.decide(0, look, refuse) == []

    world.loop.run(scenario())


def test_decision_that_raises_becomes_an_error_response(world, runtime):
    """The response has the code of the ApiError."""

    def decide(shard):
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)

    async def scenario():
        runtime.load(0, 1)
        assert runtime.decide(0, decide, refuse) == "UNKNOWN_MEMBER_ID"

    world.loop.run(scenario())


def test_commit_that_times_out_remains_in_the_log(world, runtime):
    """The client receives REQUEST_TIMED_OUT; the record is committed later."""

    async def scenario():
        runtime.load(0, 1)
        world.partitions.holds_commits = True
        response = runtime.decide(0, add("a"), refuse)
        assert await response == "REQUEST_TIMED_OUT"
        world.partitions.commit()
        assert runtime.decide(0, look, refuse) == "REQUEST_TIMED_OUT"
        await world.clock.sleep(0.001)
        assert runtime.decide(0, look, refuse) == ["a"]

    world.loop.run(scenario())


def test_lost_append_reloads_the_partition(world, runtime):
    """A record that was truncated from the log is also removed from memory."""

    async def scenario():
        runtime.load(0, 1)
        assert runtime.decide(0, add("kept"), refuse) == "added after 0"
        first = runtime.find(0)
        world.partitions.holds_commits = True
        response = runtime.decide(0, add("lost"), refuse)
        world.partitions.lose()
        assert await response == "NOT_LEADER_OR_FOLLOWER"
        world.partitions.holds_commits = False
        await world.clock.sleep(1)
        assert first.life == ["loaded", "unloaded"]
        assert runtime.decide(0, look, refuse) == ["kept"]

    world.loop.run(scenario())


def test_requests_fail_with_load_in_progress_until_loaded(world, runtime):
    """The error is COORDINATOR_LOAD_IN_PROGRESS until the whole partition is read."""

    async def scenario():
        for number in range(50):
            world.partitions.append(TOPIC, 0, [thing(f"value {number}")])
        runtime.load(0, 3)
        assert runtime.is_loading()
        assert runtime.decide(0, look, refuse) == "COORDINATOR_LOAD_IN_PROGRESS"
        await world.clock.sleep(1)
        assert runtime.decide(0, look, refuse) == [f"value {number}" for number in range(50)]
        assert world.partitions.reads > 5
        assert not runtime.is_loading()

    world.loop.run(scenario())


def test_requests_fail_with_load_in_progress_until_loaded_records_are_committed(world, runtime):
    """No response depends on records that the next leader may lack."""

    async def scenario():
        world.partitions.holds_commits = True
        world.partitions.append(TOPIC, 0, [thing("a")])
        runtime.load(0, 3)
        await world.clock.sleep(1)
        assert runtime.read(0, look, refuse) == "COORDINATOR_LOAD_IN_PROGRESS"
        [(_, loading)] = runtime.every_shard()
        assert loading.life == []
        world.partitions.commit()
        await world.clock.sleep(1)
        assert runtime.decide(0, look, refuse) == ["a"]
        assert loading.life == ["loaded"]

    world.loop.run(scenario())


class WorkingClock:
    """A clock that advances only with work, and records when its user paused."""

    def __init__(self):
        self.now = 0.0
        self.pauses = []

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.pauses.append(self.now)
        await asyncio.sleep(0)


class SlowThings(Things):
    """A shard whose replay takes a millisecond for each record."""

    clock = None

    def replay(self, record, producer_id=batch.NO_PRODUCER_ID):
        self.clock.now += 0.001
        super().replay(record, producer_id)


def test_long_log_is_loaded_in_slices(world):
    """Loading yields to the loop every few milliseconds, also within a batch."""
    shard = SlowThings(None)
    shard.clock = WorkingClock()
    slow = CoordinatorRuntime(
        TOPIC,
        lambda host: shard,
        writer=world.partitions,
        clock=shard.clock,
        tasks=world.tasks,
        settings=RuntimeSettings,
    )

    async def scenario():
        world.partitions.append(TOPIC, 0, [thing(f"value {number}") for number in range(200)])
        slow.load(0, 1)
        await world.clock.sleep(1)
        assert len(shard.values) == 200

    world.loop.run(scenario())
    worked = [after - before for before, after in itertools.pairwise([0, *shard.clock.pauses])]
    assert len(worked) > 30
    assert max(worked) < 0.007


def test_unload_cancels_a_load(world, runtime):
    """A broker that loses leadership during a load never becomes active."""

    async def scenario():
        for number in range(50):
            world.partitions.append(TOPIC, 0, [thing(f"value {number}")])
        runtime.load(0, 3)
        runtime.unload(0)
        await world.clock.sleep(1)
        assert runtime.decide(0, look, refuse) == "NOT_COORDINATOR"

    world.loop.run(scenario())


def test_unreadable_record_is_skipped_and_logged(world, runtime, caplog):
    """A bad record or batch is logged with topic, partition and offset; the load continues."""

    async def scenario():
        world.partitions.append(TOPIC, 0, [thing("a"), thing("bad"), thing("b")])
        damaged = encode_batch([thing("lost"), thing("lost")], compression=CODECS["gzip"])
        damaged[-1] ^= 0xFF
        world.partitions.append_batch(TOPIC, 0, damaged)
        world.partitions.append(TOPIC, 0, [thing("c")])
        runtime.load(0, 3)
        await world.clock.sleep(1)
        assert runtime.decide(0, look, refuse) == ["a", "b", "c"]
        assert runtime.decide(0, add("d"), refuse) == "added after 3"

    world.loop.run(scenario())
    assert runtime.skipped_count == 3
    reported = [record.getMessage() for record in caplog.records if "skipped" in record.msg]
    assert len(reported) == 2
    assert f"topic={TOPIC} partition=0 offset=1 count=1" in reported[0]
    assert f"topic={TOPIC} partition=0 offset=3 count=2" in reported[1]


def test_many_unreadable_records_are_logged_in_one_line(world, runtime, caplog):
    """After the first ten, only the total is logged."""

    async def scenario():
        world.partitions.append(TOPIC, 0, [thing("bad")] * 500)
        runtime.load(0, 3)
        await world.clock.sleep(1)
        assert runtime.decide(0, look, refuse) == []

    world.loop.run(scenario())
    reported = [record.getMessage() for record in caplog.records if "skipped" in record.msg]
    assert len(reported) == 11
    assert "count=500" in reported[-1]


def test_failed_load_leaves_the_partition_inactive(world, runtime, monkeypatch):
    """After a storage error, the partition is rejected until the next leadership loads it again."""

    def fail(*_):
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)

    async def scenario():
        world.partitions.append(TOPIC, 0, [thing("a")])
        monkeypatch.setattr(world.partitions, "read", fail)
        runtime.load(0, 3)
        await world.clock.sleep(1)
        assert runtime.decide(0, look, refuse) == "NOT_COORDINATOR"

    world.loop.run(scenario())


def test_next_epoch_of_the_same_leader_keeps_the_state(world, runtime):
    """A leader without interruption does not load again; after a skipped epoch it does."""

    async def scenario():
        runtime.load(0, 3)
        first = runtime.find(0)
        runtime.load(0, 4)
        runtime.unload(0, 3)
        assert runtime.find(0) is first
        world.partitions.move_leader(TOPIC, 0, 4)
        assert runtime.decide(0, add("a"), refuse) == "added after 0"
        runtime.load(0, 6)
        assert first.life == ["loaded", "unloaded"]
        await world.clock.sleep(1)
        assert runtime.find(0) is not first
        assert runtime.decide(0, look, refuse) == ["a"]

    world.loop.run(scenario())


def test_unload_fails_requests_that_wait_for_a_commit(world, runtime):
    """The requests return NOT_COORDINATOR instead of waiting."""

    async def scenario():
        runtime.load(0, 1)
        world.partitions.holds_commits = True
        response = runtime.decide(0, add("a"), refuse)
        runtime.close()
        assert await response == "NOT_COORDINATOR"
        world.partitions.commit()

    world.loop.run(scenario())


@pytest.mark.parametrize(("kind", "expected"), [(ControlType.COMMIT, ["a", "t", "b"]),
                                                (ControlType.ABORT, ["a", "b"])])  # fmt: skip
def test_transactional_records_apply_when_their_marker_commits(world, runtime, kind, expected):
    """The records of a transaction are replayed, and the marker commits or aborts them."""

    async def scenario():
        write = world.partitions.append_batch
        marker = EndTransactionMarker(kind, 0)
        write(TOPIC, 0, encode_batch([thing("a")]))
        write(
            TOPIC,
            0,
            encode_batch(
                [thing("t")], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
            ),
        )
        write(TOPIC, 0, control.encode_marker(marker, producer_id=7, producer_epoch=0, timestamp=1))
        write(TOPIC, 0, encode_batch([thing("b")]))
        runtime.load(0, 1)
        await world.clock.sleep(1)
        assert runtime.decide(0, look, refuse) == expected

    world.loop.run(scenario())


def test_a_bug_while_loading_restarts_the_load(world, runtime, monkeypatch):
    """The partition is loaded again from the beginning, into an empty state."""
    attempts, is_broken = [], []
    replay = Things.replay

    def replay_with_a_bug(self, record, producer_id=batch.NO_PRODUCER_ID):
        replay(self, record, producer_id)
        if record.value == b"2":
            attempts.append(list(self.values))
            if is_broken and len(attempts) == 1:
                raise LookupError("a bug")

    monkeypatch.setattr(Things, "replay", replay_with_a_bug)

    async def scenario():
        runtime.load(0, 1)
        for value in "123":
            runtime.decide(0, add(value), refuse)
        attempts.clear()
        is_broken.append(True)
        runtime.unload(0)
        runtime.load(0, 2)
        await world.clock.sleep(10)
        assert runtime.decide(0, look, refuse) == ["1", "2", "3"]

    world.loop.run(scenario())
    assert attempts == [["1", "2"], ["1", "2"]]
    assert len(world.failures) == 1
    world.failures.clear()
