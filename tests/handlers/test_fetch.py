"""Fetch: records, waits, sessions and fencing."""

import asyncio
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.files import NotCached, RealFile
from ottla.cluster.image import BrokerImage
from ottla.cluster.options.broker_options import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.replication import fetched
from ottla.server.fetch import reading
from ottla.server.handlers import fetch
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from tests.handlers.logs import NODE, OTHER, LogsBroker, batch, through_codec, values
from tests.handlers.peers import accept_peer
from tests.handlers.transactions import transactions_broker

VERSIONS = range(fetch.MIN_VERSION, fetch.MAX_VERSION + 1)


def request(broker: LogsBroker, *wanted: tuple[str, int, int], **fields: Any) -> FetchRequest:
    """Return a request for (topic, partition, offset), with topic names and ids."""
    per_partition = {
        name: fields.pop(name)
        for name in ("partition_max_bytes", "current_leader_epoch")
        if name in fields
    }
    topics = []
    for name, partition, offset in wanted:
        known = broker.image.topic(name)
        item = FetchPartition(
            partition=partition,
            fetch_offset=offset,
            **{"partition_max_bytes": 1 << 20, **per_partition},
        )
        topic_id = known.topic_id if known else bytes(15) + b"\x09"
        topics.append(FetchTopic(topic=name, topic_id=topic_id, partitions=[item]))
    defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24}
    return FetchRequest(topics=topics, **(defaults | fields))


def only(response: FetchResponse) -> Any:
    return response.responses[0].partitions[0]


def mentioned(response: FetchResponse) -> list[int]:
    return [item.partition_index for topic in response.responses for item in topic.partitions]


def counts(response: FetchResponse) -> list[int]:
    return [len(values(item.records)) for topic in response.responses for item in topic.partitions]


@pytest.mark.parametrize("version", VERSIONS)
async def test_committed_records_are_returned(broker: LogsBroker, version: int) -> None:
    """Every version returns the records from the offset and the partition's offsets."""
    broker.create("t")
    broker.write("t", b"a", b"b", b"c")
    response = await broker.ask(fetch, request(broker, ("t", 0, 1)), version)
    assert values(only(response).records) == [b"b", b"c"]
    assert (only(response).error_code, only(response).high_watermark) == (0, 3)
    assert only(response).last_stable_offset == 3
    assert only(response).aborted_transactions is None
    assert response.responses[0].topic == ("t" if version < 13 else "")


async def test_read_committed_has_a_list_of_aborted_transactions(broker: LogsBroker) -> None:
    """The list is empty without aborted transactions; it is null for read_uncommitted."""
    broker.create("t")
    broker.write("t", b"a")
    response = await broker.ask(fetch, request(broker, ("t", 0, 0), isolation_level=1), 11)
    assert only(response).aborted_transactions == []
    assert values(only(response).records) == [b"a"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("offset", [-1, 4, 99])
async def test_offsets_outside_of_the_log_are_rejected_at_once(
    broker: LogsBroker, version: int, offset: int
) -> None:
    """The error OFFSET_OUT_OF_RANGE does not wait for max_wait_ms."""
    broker.create("t")
    broker.write("t", b"a", b"b", b"c")
    fetch_request = request(broker, ("t", 0, offset), max_wait_ms=60_000)
    response = await broker.ask(fetch, fetch_request, version)
    assert only(response).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert only(response).high_watermark == -1
    assert values(only(response).records) == []


@pytest.mark.parametrize("version", [12, 13])
async def test_unknown_topics_are_rejected(broker: LogsBroker, version: int) -> None:
    """The error is UNKNOWN_TOPIC_OR_PARTITION by name, and UNKNOWN_TOPIC_ID by id."""
    response = await broker.ask(fetch, request(broker, ("nope", 0, 0), max_wait_ms=60_000), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert only(response).error_code == (unknown if version < 13 else ErrorCode.UNKNOWN_TOPIC_ID)
    assert only(response).aborted_transactions == []


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, ErrorCode.NONE),
        (-2, ErrorCode.NONE),
        (3, ErrorCode.NONE),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_leader_epochs_fence(broker: LogsBroker, epoch: int, code: ErrorCode) -> None:
    """A client with another leader epoch than the broker's gets an error (KIP-320)."""
    broker.create("t", leader_epoch=3)
    broker.write("t", b"a")
    response = await broker.ask(fetch, request(broker, ("t", 0, 0), current_leader_epoch=epoch), 12)
    assert only(response).error_code == code


@pytest.mark.parametrize("version", [11, 12, 16])
async def test_new_leader_is_returned(broker: LogsBroker, version: int) -> None:
    """The leader is returned from version 12, its address from version 16 (KIP-951)."""
    broker.create("t", replicas=(OTHER,), leader=OTHER, leader_epoch=5)
    response = await broker.ask(fetch, request(broker, ("t", 0, 0)), version)
    assert only(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if version >= 12:
        assert only(response).current_leader.leader_id == OTHER
    ports = [(node.node_id, node.port) for node in response.node_endpoints]
    assert ports == ([(OTHER, 9093)] if version >= 16 else [])


@pytest.mark.parametrize("version", [14, 15])
async def test_replica_ids_are_not_trusted(broker: LogsBroker, version: int) -> None:
    """A replica id is not trusted: it neither returns records nor updates a position
    (CVE-2018-1288).
    """
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    forged = request(broker, ("t", 0, 1))
    if version < 15:
        forged.replica_id = OTHER
    else:
        forged.replica_state = ReplicaState(replica_id=OTHER)
    response = await broker.ask(fetch, forged, version)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response.responses == []
    assert broker.partition("t").high_watermark == 0


async def test_uncommitted_records_are_not_returned(broker: LogsBroker) -> None:
    """Consumers read up to the high watermark."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b")
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    response = await broker.ask(fetch, request(broker, ("t", 0, 0)), 12)
    assert values(only(response).records) == [b"a"]
    beyond = await broker.ask(fetch, request(broker, ("t", 0, 2)), 12)
    assert (only(beyond).error_code, values(only(beyond).records)) == (0, [])


# -- limits ---------------------------------------------------------------------------------------


async def test_first_batch_is_returned_however_large(broker: LogsBroker) -> None:
    """Otherwise a consumer could never read past it (KIP-74)."""
    broker.create("t")
    broker.write("t", b"x" * 5000, b"y")
    fetch_request = request(broker, ("t", 0, 0), max_bytes=10, partition_max_bytes=10)
    response = await broker.ask(fetch, fetch_request, 12)
    assert values(only(response).records) == [b"x" * 5000]


async def test_only_the_first_partition_with_data_may_exceed(broker: LogsBroker) -> None:
    """The other partitions return whole batches that fit, or nothing."""
    broker.create("t", partitions=3)
    for number in (1, 2):
        broker.write("t", b"x" * 5000, number=number)
    fetch_request = request(broker, ("t", 0, 0), ("t", 1, 0), ("t", 2, 0), max_bytes=10)
    response = await broker.ask(fetch, fetch_request, 12)
    counts = {
        item.partition_index: len(values(item.records))
        for topic in response.responses
        for item in topic.partitions
    }
    assert counts == {0: 0, 1: 1, 2: 0}


async def test_partitions_share_the_bytes_of_a_response(broker: LogsBroker) -> None:
    """The limit max_bytes applies to all partitions, partition_max_bytes to each."""
    broker.create("t", partitions=2)
    for number in (0, 1):
        broker.write("t", *[b"x" * 900] * 10, number=number)
    fetch_request = request(
        broker, ("t", 0, 0), ("t", 1, 0), max_bytes=7000, partition_max_bytes=5000
    )
    response = await broker.ask(fetch, fetch_request, 12)
    assert counts(response) == [5, 2]


async def test_response_size_is_limited(broker: LogsBroker, monkeypatch: Any) -> None:
    """The broker has a limit of its own, whatever the client allows."""
    monkeypatch.setattr(reading, "RESPONSE_BYTES_MAX", 3000)
    broker.create("t")
    broker.write("t", *[b"x" * 900] * 10)
    fetch_request = request(broker, ("t", 0, 0), max_bytes=2**31 - 1, partition_max_bytes=2**31 - 1)
    response = await broker.ask(fetch, fetch_request, 12)
    assert len(values(only(response).records)) == 3


async def test_clients_that_do_not_read_get_small_responses(broker: LogsBroker) -> None:
    """While responses are unsent, each fetch returns only one batch."""
    broker.create("t", partitions=2)
    for number in (0, 1):
        broker.write("t", *[b"x" * 900] * 10, number=number)
    context = broker.context(fetch, 12)
    context.connection.answer_room_bytes = 0
    fetch_request = request(broker, ("t", 0, 0), ("t", 1, 0))
    assert counts(fetch.handle(context, fetch_request)) == [1, 0]


async def test_replicas_do_not_suffer_from_clients_that_do_not_read(broker: LogsBroker) -> None:
    """A follower gets all records that it requests although responses of clients are unsent."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a", b"b", b"c")
    accept_peer(broker, OTHER)
    context = broker.context(fetch, 12)
    context.connection.answer_room_bytes = 0
    fetch_request = request(broker, ("t", 0, 0), replica_id=OTHER)
    assert counts(fetch.handle(context, fetch_request)) == [3]


async def test_min_bytes_above_the_response_limit_do_not_wait(
    broker: LogsBroker, monkeypatch: Any
) -> None:
    """A min_bytes above the broker's own limit cannot be reached."""
    monkeypatch.setattr(reading, "RESPONSE_BYTES_MAX", 3000)
    monkeypatch.setattr(fetched, "ENOUGH_BYTES", 1500)
    broker.create("t")
    broker.write("t", *[b"x" * 900] * 10)
    fetch_request = request(broker, ("t", 0, 0), min_bytes=1 << 20, max_wait_ms=60_000)
    assert counts(await broker.ask(fetch, fetch_request, 12)) == [3]


# -- waiting --------------------------------------------------------------------------------------


async def test_an_empty_fetch_waits_for_records(broker: LogsBroker) -> None:
    """The append completes the fetch before its timeout."""
    broker.create("t")
    response = broker.begin(fetch, request(broker, ("t", 0, 0), max_wait_ms=60_000), 12)
    assert not response.done()
    broker.write("t", b"a")
    assert values(only(through_codec(await response, 12)).records) == [b"a"]


async def test_empty_fetch_times_out(broker: LogsBroker) -> None:
    """After max_wait_ms the response has no records."""
    broker.create("t")
    response = await broker.ask(fetch, request(broker, ("t", 0, 0), max_wait_ms=1), 12)
    assert (only(response).error_code, values(only(response).records)) == (0, [])


async def test_fetch_waits_for_min_bytes(broker: LogsBroker) -> None:
    """The fetch returns only when there are enough bytes."""
    broker.create("t", partitions=2)
    broker.write("t", b"a" * 100)
    fetch_request = request(broker, ("t", 0, 0), ("t", 1, 0), min_bytes=1000, max_wait_ms=60_000)
    future = broker.begin(fetch, fetch_request, 12)
    for number in (1, 0):
        broker.write("t", b"b" * 300, number=number)
        await _turn()
        assert not future.done()
    broker.write("t", b"c" * 300, number=1)
    response = await future
    assert counts(response) == [2, 2]


async def test_uncommitted_bytes_do_not_count(broker: LogsBroker) -> None:
    """An append does not complete a fetch that may not read it yet."""
    broker.create("t", replicas=(NODE, OTHER))
    fetch_request = request(broker, ("t", 0, 0), min_bytes=50, max_wait_ms=60_000)
    response = broker.begin(fetch, fetch_request, 12)
    broker.write("t", b"a" * 100)
    await _turn()
    assert not response.done()
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    assert values(only(await response).records) == [b"a" * 100]


async def test_new_leader_completes_a_waiting_fetch(broker: LogsBroker) -> None:
    """The client must not wait for a partition that has moved."""
    broker.create("t", replicas=(NODE, OTHER))
    wait: dict[str, Any] = {"max_wait_ms": 60_000, "current_leader_epoch": 3}
    response = broker.begin(fetch, request(broker, ("t", 0, 0), **wait), 12)
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=9)
    assert only(await response).error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_new_leader_completes_a_waiting_fetch_of_an_old_client(broker: LogsBroker) -> None:
    """A client that knows leaders only must not wait at a follower."""
    broker.create("t", replicas=(NODE, OTHER))
    response = broker.begin(fetch, request(broker, ("t", 0, 0), max_wait_ms=60_000), 10)
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=9)
    assert only(await response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("version", VERSIONS)
async def test_follower_serves_consumers_up_to_its_high_watermark(
    broker: LogsBroker, version: int
) -> None:
    """From version 11 a consumer may read from a follower; older ones know leaders only (KIP-392)."""
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"committed")
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    broker.write("t", b"not committed")
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=4)
    response = only(await broker.ask(fetch, request(broker, ("t", 0, 0)), version))
    if version < 11:
        assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        assert (response.high_watermark, values(response.records)) == (1, [b"committed"])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("selector", [None, LEADER_SELECTOR, RACK_AWARE_SELECTOR])
async def test_leader_names_the_replica_in_the_rack_of_the_consumer(
    broker: LogsBroker, version: int, selector: str | None
) -> None:
    """With RackAwareReplicaSelector the response has a replica instead of records (KIP-392)."""
    if selector is not None:
        broker.options = BROKER_OPTIONS.parse({"replica.selector.class": selector})
    broker.image = broker.image.with_brokers(
        [BrokerImage(NODE, "b1", 9092, rack="r1"), BrokerImage(OTHER, "b2", 9093, rack="r2")]
    )
    broker.create("t", replicas=(NODE, OTHER))
    broker.write("t", b"a")
    broker.partition("t").follower_fetched(OTHER, 1, 0)
    rack = {"rack_id": "r2"} if version >= 11 else {}
    wait = {"max_wait_ms": 60_000, "min_bytes": 1000} if rack else {}
    response = request(
        broker, ("t", 0, 0), **rack, **(wait if selector == RACK_AWARE_SELECTOR else {})
    )
    actual = only(await broker.ask(fetch, response, version))
    if selector == RACK_AWARE_SELECTOR and rack:
        assert (actual.preferred_read_replica, len(actual.records), actual.high_watermark) == (
            OTHER, 0, 1,
        )  # fmt: skip
    else:
        assert (actual.preferred_read_replica, values(actual.records)) == (-1, [b"a"])


@pytest.mark.parametrize(
    ("epoch", "code"), [(3, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
async def test_follower_fences_consumers_of_other_epochs(
    broker: LogsBroker, epoch: int, code: ErrorCode
) -> None:
    """A follower in another leader epoch than the client's may have another log (KIP-320)."""
    broker.create("t", replicas=(NODE, OTHER), leader=OTHER, leader_epoch=4)
    response = await broker.ask(fetch, request(broker, ("t", 0, 0), current_leader_epoch=epoch), 12)
    assert only(response).error_code == code


async def test_deletion_completes_a_waiting_fetch(broker: LogsBroker) -> None:
    """A deleted topic ends the wait."""
    topic = broker.create("t")
    future = broker.begin(fetch, request(broker, ("t", 0, 0), max_wait_ms=60_000), 13)
    broker.image = broker.image.with_topics(deleted=["t"])
    broker.replicas.stop_replicas(1, [("t", 0)], delete=True)
    response = await future
    assert only(response).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert response.responses[0].topic_id == topic.topic_id


async def test_a_fetch_without_partitions_is_answered_at_once(broker: LogsBroker) -> None:
    """Such a fetch does not wait."""
    response = await broker.ask(fetch, request(broker, max_wait_ms=60_000), 12)
    assert response.responses == []


async def test_cancelled_fetch_leaves_no_waiters(broker: LogsBroker) -> None:
    """A lost connection cancels the wait."""
    broker.create("t")
    response = broker.begin(fetch, request(broker, ("t", 0, 0), max_wait_ms=60_000), 12)
    assert len(broker.partition("t").waiters) == 1
    response.cancel()
    await _turn()
    assert not broker.partition("t").waiters


async def test_stop_answers_waiting_fetches(broker: LogsBroker) -> None:
    """A stopping broker completes all waiting fetches, and new ones do not wait."""
    broker.create("t")
    response = broker.begin(fetch, request(broker, ("t", 0, 0), max_wait_ms=60_000), 12)
    broker.replicas.finish_waiting()
    assert only(await response).error_code == 0
    late = broker.begin(fetch, request(broker, ("t", 0, 0), max_wait_ms=60_000), 12)
    assert only(await late).error_code == 0


async def test_cold_records_are_read_in_the_background(
    broker: LogsBroker, monkeypatch: Any
) -> None:
    """Such a read does not block the event loop, and has the same response."""
    broker.create("t")
    broker.write("t", b"a", b"b")
    file = type(broker.files.open("/data/t-0/00000000000000000000.log"))

    def is_cold(self: RealFile, position: int, size_bytes: int) -> bytes:
        raise NotCached

    monkeypatch.setattr(file, "read_at_if_cached", is_cold)
    response = broker.begin(fetch, request(broker, ("t", 0, 0), max_wait_ms=60_000), 12)
    assert asyncio.isfuture(response)
    assert values(only(await response).records) == [b"a", b"b"]


# -- sessions (KIP-227) ---------------------------------------------------------------------------


async def test_records_of_partitions_that_change_together_are_returned_together(
    broker: LogsBroker,
) -> None:
    """None of them becomes idle in the session with records that the client does not have."""
    broker.create("t", partitions=2)
    positions = ("t", 0, 0), ("t", 1, 0)
    first = request(broker, *positions, session_epoch=0, max_wait_ms=60_000)
    waiting = broker.begin(fetch, first, 12)
    for number in (0, 1):
        broker.write("t", b"a", number=number)
    assert counts(through_codec(await waiting, 12)) == [1, 1]


async def test_session_returns_only_changed_partitions(broker: LogsBroker) -> None:
    """After the first response, unchanged partitions are omitted."""
    broker.create("t", partitions=3)
    positions = [("t", number, 0) for number in range(3)]
    first = await broker.ask(fetch, request(broker, *positions, session_epoch=0), 12)
    assert first.session_id > 0
    assert mentioned(first) == [0, 1, 2]
    broker.write("t", b"a", number=1)
    following = request(broker, session_id=first.session_id, session_epoch=1)
    second = await broker.ask(fetch, following, 12)
    assert second.session_id == first.session_id
    assert mentioned(second) == [1]
    assert values(only(second).records) == [b"a"]
    moved = request(broker, ("t", 1, 1), session_id=first.session_id, session_epoch=2)
    assert mentioned(await broker.ask(fetch, moved, 12)) == []


async def test_forgotten_partitions_are_omitted(broker: LogsBroker) -> None:
    """Removed partitions are omitted and added ones included, from the same request on."""
    broker.create("t", partitions=2)
    topic = broker.create("u")
    broker.write("t", b"a")
    broker.write("u", b"b")
    first = await broker.ask(fetch, request(broker, ("t", 0, 1), session_epoch=0), 13)
    changed = request(broker, ("u", 0, 0), session_id=first.session_id, session_epoch=1)
    t = broker.image.topic("t")
    assert t is not None
    changed.forgotten_topics_data = [ForgottenTopic(topic="t", topic_id=t.topic_id, partitions=[0])]
    broker.write("t", b"c")
    second = await broker.ask(fetch, changed, 13)
    assert [item.topic_id for item in second.responses] == [topic.topic_id]
    assert values(only(second).records) == [b"b"]


@pytest.mark.parametrize(
    ("session_id", "epoch", "code"),
    [
        (1, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 5, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
async def test_invalid_session_epochs_are_rejected(
    broker: LogsBroker, session_id: int | None, epoch: int, code: ErrorCode
) -> None:
    """The client then begins a new session."""
    broker.create("t")
    first = await broker.ask(fetch, request(broker, ("t", 0, 0), session_epoch=0), 12)
    fetch_request = request(broker, session_id=session_id or first.session_id, session_epoch=epoch)
    response = await broker.ask(fetch, fetch_request, 12)
    assert (response.error_code, response.session_id, response.responses) == (code, 0, [])


async def test_names_and_ids_do_not_mix_in_a_session(broker: LogsBroker) -> None:
    """A session uses topic names or ids as it began."""
    broker.create("t")
    first = await broker.ask(fetch, request(broker, ("t", 0, 0), session_epoch=0), 12)
    fetch_request = request(broker, session_id=first.session_id, session_epoch=1)
    response = await broker.ask(fetch, fetch_request, 13)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


async def test_append_completes_a_waiting_session_fetch(broker: LogsBroker) -> None:
    """Consumers use sessions and waits together."""
    broker.create("t", partitions=2)
    positions = [("t", 0, 0), ("t", 1, 0)]
    first = await broker.ask(fetch, request(broker, *positions, session_epoch=0), 12)
    following = request(broker, session_id=first.session_id, session_epoch=1, max_wait_ms=60_000)
    future = broker.begin(fetch, following, 12)
    broker.partition("t", 1).append_as_leader(batch(b"z"), acks=1)
    response = through_codec(await future, 12)
    assert mentioned(response) == [1]
    assert values(only(response).records) == [b"z"]


async def _turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_only_aborted_transactions_of_the_records_are_returned() -> None:
    """Aborted transactions past the returned records are omitted."""
    async with transactions_broker() as running:
        producer = await running.producer()
        for number in range(20):
            await running.add(producer, 0)
            assert await running.send(producer, b"x" * 1000, sequence=number) == 0
            assert await running.end(producer, is_commit=False) == 0
        everything = await running.read()
        assert [item.first_offset for item in everything.aborted_transactions] == list(
            range(0, 40, 2)
        )
        few = await running.read(max_bytes=3000)
        assert [item.first_offset for item in few.aborted_transactions] == [0, 2]


async def test_partition_that_is_named_twice_is_read_once(broker: LogsBroker) -> None:
    """The last entry counts, as in Kafka."""
    broker.create("t")
    broker.write("t", b"a", b"b")
    response = await broker.ask(fetch, request(broker, ("t", 0, 0), ("t", 0, 1)), 12)
    assert mentioned(response) == [0]
    assert values(only(response).records) == [b"b"]
