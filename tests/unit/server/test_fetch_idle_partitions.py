"""A fetch of many partitions reads only those that changed, with the same result as reading all."""

import asyncio
import random

import pytest

from ottla.replication import leading
from ottla.server.fetch.parked import Parked
from ottla.server.handlers import fetch
from ottla.wire.messages.fetch import FetchResponse, ForgottenTopic
from tests.handlers.logs import LogsBroker, batch, values
from tests.handlers.test_fetch import mentioned, only, request

PARTITIONS = 100
TOPIC_IDS_SINCE = 13


def looks(broker: LogsBroker) -> int:
    """Return how often fetches have read a partition."""
    return sum(broker.partition("t", number).fetches_count for number in range(PARTITIONS))


async def test_session_fetch_reads_only_changed_partitions(broker: LogsBroker) -> None:
    """Neither its arrival nor a wake-up reads partitions without new records."""
    broker.create("t", partitions=PARTITIONS)
    positions = [("t", number, 0) for number in range(PARTITIONS)]
    first = await broker.ask(fetch, request(broker, *positions, session_epoch=0), 12)
    moved: list[tuple[str, int, int]] = []
    before = looks(broker)
    for epoch in range(1, 51):
        number = epoch * 7 % PARTITIONS
        following = request(
            broker, *moved, session_id=first.session_id, session_epoch=epoch, max_wait_ms=60_000
        )
        future = broker.begin(fetch, following, 12)
        partition = broker.partition("t", number)
        partition.append_as_leader(batch(b"z"), acks=1)
        response: FetchResponse = await future
        assert mentioned(response) == [number]
        assert values(only(response).records) == [b"z"]
        moved = [("t", number, 1)]
    assert looks(broker) - before <= 3 * 50


async def test_wake_up_without_session_reads_only_changed_partitions(broker: LogsBroker) -> None:
    """The response still contains every partition, as the protocol requires."""
    broker.create("t", partitions=PARTITIONS)
    positions = [("t", number, 0) for number in range(PARTITIONS)]
    future = broker.begin(fetch, request(broker, *positions, max_wait_ms=60_000), 12)
    before = looks(broker)
    broker.partition("t", 42).append_as_leader(batch(b"z"), acks=1)
    response: FetchResponse = await future
    assert looks(broker) - before == 1
    assert mentioned(response) == list(range(PARTITIONS))
    with_records = [
        item.partition_index for item in response.responses[0].partitions if item.records
    ]
    assert with_records == [42]


@pytest.mark.parametrize("version", [12, TOPIC_IDS_SINCE])
async def test_min_bytes_count_over_many_partitions(broker: LogsBroker, version: int) -> None:
    """The bytes of idle partitions count, and so do later bytes of the same partition."""
    broker.create("t", partitions=PARTITIONS)
    positions = [("t", number, 0) for number in range(PARTITIONS)]
    first = await broker.ask(fetch, request(broker, *positions, session_epoch=0), version)
    one = len(batch(b"z"))
    following = request(
        broker,
        session_id=first.session_id,
        session_epoch=1,
        max_wait_ms=60_000,
        min_bytes=4 * one,
    )
    future = broker.begin(fetch, following, version)
    before = looks(broker)
    for number in (3, 3, 9, 3):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not future.done()
        broker.partition("t", number).append_as_leader(batch(b"z"), acks=1)
    response: FetchResponse = await future
    assert sorted(mentioned(response)) == [3, 9]
    assert looks(broker) - before <= 4


async def test_ended_sessions_wait_on_nothing(broker: LogsBroker) -> None:
    """A session that a full fetch replaces leaves no waiters at the partitions."""
    broker.create("t", partitions=2)
    positions = [("t", 0, 0), ("t", 1, 0)]
    first = await broker.ask(fetch, request(broker, *positions, session_epoch=0), 12)
    assert broker.partition("t", 1).waiters
    last = request(broker, *positions, session_id=first.session_id, session_epoch=-1)
    await broker.ask(fetch, last, 12)
    assert not broker.partition("t", 0).waiters
    assert not broker.partition("t", 1).waiters


async def test_sessions_keep_no_partition_that_changed_was_forgotten_or_deleted(
    broker: LogsBroker,
) -> None:
    """A session that lives long would otherwise keep the logs of all topics that were deleted."""
    broker.create("t", partitions=4)
    positions = [("t", number, 0) for number in range(4)]
    first = await broker.ask(fetch, request(broker, *positions, session_epoch=0), 12)
    (session,) = broker.fetch_sessions._sessions.values()
    assert len(session.seen_bytes) == 4
    broker.write("t", b"a", number=0)
    await asyncio.sleep(0)
    assert len(session.seen_bytes) == 3
    following = request(broker, session_id=first.session_id, session_epoch=1)
    following.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[1])]
    await broker.ask(fetch, following, 12)
    assert set(session.seen_bytes) == {broker.partition("t", 2), broker.partition("t", 3)}
    assert not broker.partition("t", 1).waiters
    broker.replicas.stop_replicas(1, [("t", 2)], delete=True)
    await asyncio.sleep(0)
    assert set(session.seen_bytes) == {broker.partition("t", 3)}
    last = request(broker, session_id=first.session_id, session_epoch=-1)
    await broker.ask(fetch, last, 12)
    assert not session.seen_bytes


async def test_failing_fetch_of_a_session_does_not_lose_changes_of_other_partitions(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the check of one waiting fetch raises, the fetches of other sessions are still woken."""
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    broker.create("t", partitions=3)
    check = Parked.check
    failed: list[Parked] = []

    def fail_once(parked: Parked) -> FetchResponse | None:
        if not failed:
            failed.append(parked)
            raise RuntimeError("a fault")
        return check(parked)

    monkeypatch.setattr(Parked, "check", fail_once)
    waiting = []
    for number in range(3):
        opened = await broker.ask(fetch, request(broker, ("t", number, 0), session_epoch=0), 12)
        following = request(broker, max_wait_ms=60_000)
        following.session_id, following.session_epoch = opened.session_id, 1
        waiting.append(broker.begin(fetch, following, 12))
    for number in range(3):
        broker.write("t", b"z", number=number)
    async with asyncio.timeout(5):
        for number in (1, 2):
            assert mentioned(await waiting[number]) == [number]
    with pytest.raises(RuntimeError):
        await waiting[0]
    assert len(errors) == 1


async def test_advanced_log_start_is_reported_in_time(broker: LogsBroker) -> None:
    """Retention marks no partition as changed; a read of all partitions after seconds finds it."""
    broker.create("t", partitions=2)
    broker.write("t", b"a")
    positions = [("t", 0, 1), ("t", 1, 0)]
    first = await broker.ask(fetch, request(broker, *positions, session_epoch=0), 12)
    broker.partition("t").log.truncation.advance_log_start_offset(1)
    broker.clock.now += 6.0  # type: ignore[attr-defined]
    following = request(broker, session_id=first.session_id, session_epoch=1)
    response = await broker.ask(fetch, following, 12)
    assert mentioned(response) == [0]
    assert only(response).log_start_offset == 1


@pytest.mark.parametrize("version", [12, TOPIC_IDS_SINCE])
async def test_random_sessions_answer_as_if_they_read_all_partitions(
    broker: LogsBroker, version: int
) -> None:
    """Two sessions send the same requests; one of them reads every partition each time."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    count = 6
    topic = broker.create("t", partitions=count)
    offsets = [0] * count
    requested = set(range(count))
    positions = [("t", number, 0) for number in range(count)]
    ids = []
    for _ in range(2):
        first = await broker.ask(fetch, request(broker, *positions, session_epoch=0), version)
        ids.append(first.session_id)
    for epoch in range(1, 400):
        number = rng.randrange(count)
        partition = broker.partition("t", number)
        action = rng.randrange(6)
        if action < 3:
            partition.append_as_leader(batch(b"z" * rng.randrange(1, 9)), acks=1)
        elif action == 3:
            leading.delete_records(partition, rng.randint(0, partition.high_watermark))
        named = [index for index in range(count) if rng.random() < 0.3]
        forgotten = [index for index in range(count) if index not in named and rng.random() < 0.05]
        for each in named:
            end = broker.partition("t", each).log.log_end_offset
            offsets[each] = rng.choice((offsets[each], end, rng.randint(0, end + 1)))
        requested = (requested | set(named)) - set(forgotten)
        if not requested:
            named, forgotten = [0], []
            requested = {0}
        result = []
        isolation = int(rng.random() < 0.1)
        for which, session_id in enumerate(ids):
            if which:
                broker.fetch_sessions._sessions[session_id].read_all_next()
            following = request(
                broker,
                *(("t", each, offsets[each]) for each in named),
                session_id=session_id,
                session_epoch=epoch,
                isolation_level=isolation,
            )
            following.forgotten_topics_data = [
                ForgottenTopic(topic="t", topic_id=topic.topic_id, partitions=forgotten)
            ]
            response = await broker.ask(fetch, following, version)
            assert response.error_code == 0
            result.append(
                sorted(
                    (
                        item.partition_index,
                        item.error_code,
                        item.high_watermark,
                        item.last_stable_offset,
                        item.log_start_offset,
                        bytes(item.records or b""),
                    )
                    for reported in response.responses
                    for item in reported.partitions
                )
            )
        assert result[0] == result[1]
