"""Offsets over a connection of their own: order, identities, errors of single partitions."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import transport
from ottla.client.brokers import Brokers
from ottla.client.errors import Closed, TimedOut
from ottla.client.group.coordinator_thread import CoordinatorThread
from ottla.client.group.identities import Identity, decode_metadata, encode_metadata
from ottla.client.group.member_commits import MemberCommits
from ottla.client.records import OffsetAndMetadata, TopicPartition
from ottla.wire.messages.find_coordinator import FindCoordinatorResponse
from ottla.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

WAIT_S = 20
MEMBER = Identity("m", 3)
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def coordinator(broker: Any) -> Any:
    """Return a broker that coordinates every group and accepts every commit."""
    broker.answers["FindCoordinator"] = lambda request: FindCoordinatorResponse(
        node_id=broker.node_id, host=broker.address.host, port=broker.address.port
    )
    broker.answers["OffsetCommit"] = answer_of(lambda name, partition: 0)
    return broker


@pytest.fixture
def new_thread(coordinator: Any) -> Iterator[Callable[..., CoordinatorThread]]:
    """Yield a function that returns threads, which are closed after the test."""
    threads: list[CoordinatorThread] = []

    def make(timeout_s: float = WAIT_S) -> CoordinatorThread:
        brokers = Brokers(coordinator.bootstrap, timeout_s=WAIT_S, is_proven=True)
        threads.append(CoordinatorThread(brokers, "g", timeout_s))
        return threads[-1]

    yield make
    for thread in threads:
        thread.close()


def answer_of(code_of: Callable[[str, int], int]) -> Callable[[Any], OffsetCommitResponse]:
    """Return a function that responds to a commit with the error code of each partition."""
    return lambda request: OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=row.partition_index,
                        error_code=code_of(topic.name, row.partition_index),
                    )
                    for row in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def commits_of(coordinator: Any) -> list[dict[tuple[str, int], tuple[int, str]]]:
    """Return the offsets and metadata of every commit that has arrived."""
    return [
        {
            (topic.name, row.partition_index): (row.committed_offset, row.committed_metadata)
            for topic in request.topics
            for row in topic.partitions
        }
        for name, _, request in coordinator.requests
        if name == "OffsetCommit"
    ]


def hold(coordinator: Any) -> threading.Event:
    """Let the first commit wait for the event that is returned; others get their response at once."""
    release, answer = threading.Event(), coordinator.answers["OffsetCommit"]

    def held(request: Any) -> Any:
        release.wait(WAIT_S)
        return answer(request)

    coordinator.answers["OffsetCommit"] = held
    return release


@pytest.mark.parametrize("instance", [None, "", "static-1"])
def test_identity_has_the_form_of_librdkafka(instance: str | None) -> None:
    """An identity that is written is read again, for dynamic and for static members."""
    identity = Identity("member-é", 2_000_000_000, instance)
    assert decode_metadata(encode_metadata("group", identity)) == identity


def test_metadata_of_a_real_consumer_is_read() -> None:
    """A consumer that is no member has no generation and no id."""
    consumer = transport.open_consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    try:
        assert decode_metadata(consumer.consumer_group_metadata()) == Identity()
    finally:
        consumer.close()
    with pytest.raises(ValueError, match="does not begin"):
        decode_metadata(b"CGMDv9:")


def test_commit_carries_the_identity_and_metadata_as_it_is(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """Metadata has no end mark, which librdkafka's Python binding would add."""
    identity = Identity("m", 3, "static")
    assert new_thread().commit({FIRST: (5, "note"), SECOND: (6, "")}, identity).result(WAIT_S) == 0
    assert commits_of(coordinator) == [{FIRST: (5, "note"), SECOND: (6, "")}]
    request = coordinator.requests[-1][2]
    assert request.generation_id_or_member_epoch == 3
    assert (request.member_id, request.group_instance_id) == ("m", "static")


def test_commits_that_wait_become_one_request(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """The last offset of a partition counts; another identity has a request of its own."""
    release, thread = hold(coordinator), new_thread()
    offsets = [{FIRST: (number, "")} for number in range(4)]
    futures = [thread.commit(row, MEMBER) for row in offsets]
    futures.append(thread.commit({SECOND: (9, "")}, MEMBER))
    later = MEMBER._replace(generation=4)
    futures.append(thread.commit({FIRST: (7, "")}, later))
    release.set()
    assert [future.result(WAIT_S) for future in futures] == [0] * 6
    sent = commits_of(coordinator)
    assert sent[-2:] == [{FIRST: (3, ""), SECOND: (9, "")}, {FIRST: (7, "")}]
    assert len(sent) <= 3


def test_error_of_a_partition_concerns_its_own_commits(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """Commits of others in the same request are repeated alone."""
    denied = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    coordinator.answers["OffsetCommit"] = answer_of(lambda name, partition: partition and denied)
    release, thread = hold(coordinator), new_thread()
    held = thread.commit({FIRST: (1, "")}, MEMBER)
    futures = [thread.commit({key: (2, "")}, MEMBER) for key in (FIRST, SECOND)]
    release.set()
    assert held.result(WAIT_S) == 0
    assert [future.result(WAIT_S) for future in futures] == [0, denied]


def test_transient_error_is_repeated(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """After the time is over, the error of the last attempt is raised."""
    codes = iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
    coordinator.answers["OffsetCommit"] = answer_of(lambda *_: int(next(codes, 0)))
    assert new_thread().commit({FIRST: (1, "")}, MEMBER).result(WAIT_S) == 0
    assert len(commits_of(coordinator)) == 3
    coordinator.answers["OffsetCommit"] = answer_of(lambda *_: int(ErrorCode.NOT_COORDINATOR))
    with pytest.raises(ApiError) as caught:
        new_thread(timeout_s=0).commit({FIRST: (1, "")}, MEMBER).result(WAIT_S)
    assert caught.value.code is ErrorCode.NOT_COORDINATOR


def test_commit_opens_a_closed_connection_again(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """A broker closes connections that were idle for long (connections.max.idle.ms)."""
    accept, answers = coordinator.answers["OffsetCommit"], iter([False, True, False])
    coordinator.answers["OffsetCommit"] = lambda request: (
        None if next(answers, False) else accept(request)
    )
    thread = new_thread()
    for number in range(3):
        assert thread.commit({FIRST: (number, "")}, MEMBER).result(WAIT_S) == 0
    assert commits_of(coordinator)[-1] == {FIRST: (2, "")}
    assert len(commits_of(coordinator)) == 4


def test_commits_fail_after_the_close(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """The request that has been sent ends; what waits behind it is not sent."""
    release, thread = hold(coordinator), new_thread()
    first = thread.commit({FIRST: (1, "")}, MEMBER)
    second = thread.commit({FIRST: (2, "")}, MEMBER._replace(generation=4))
    coordinator_has_first = threading.Event()
    first.add_done_callback(lambda _: coordinator_has_first.set())
    while not commits_of(coordinator):
        coordinator_has_first.wait(0.01)
    thread.close()
    release.set()
    assert first.result(WAIT_S) == 0
    with pytest.raises(Closed, match="closed before"):
        second.result(WAIT_S)
    assert len(commits_of(coordinator)) == 1


class World:
    """A member whose identity a test changes."""

    def __init__(self, thread: CoordinatorThread, *, is_subscribed: bool = True) -> None:
        self.identity = MEMBER
        self.commits = MemberCommits(
            thread,
            lambda: encode_metadata("g", self.identity),
            lambda: is_subscribed,
            transport.Waits(),
        )


def test_commit_is_repeated_with_a_new_identity(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """A member that keeps its partitions in a rebalance commits them in the new generation."""
    world = World(new_thread())

    def answer(request: Any) -> OffsetCommitResponse:
        is_old = request.generation_id_or_member_epoch == MEMBER.generation
        world.identity = MEMBER._replace(generation=4)
        return answer_of(lambda *_: int(ErrorCode.STALE_MEMBER_EPOCH) if is_old else 0)(request)

    coordinator.answers["OffsetCommit"] = answer
    world.commits.commit({FIRST: (1, "")}, WAIT_S)
    assert len(commits_of(coordinator)) == 2


def test_commit_waits_for_the_epoch_that_the_coordinator_has(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """librdkafka may learn it later, from the response to the heartbeat that has increased it."""
    world = World(new_thread())
    codes = [ErrorCode.STALE_MEMBER_EPOCH] * 3

    def answer(request: Any) -> OffsetCommitResponse:
        code = int(codes.pop()) if codes else 0
        response = answer_of(lambda *_: code)(request)
        if not codes:
            world.identity = MEMBER._replace(generation=4)
        return response

    coordinator.answers["OffsetCommit"] = answer
    world.commits.commit({FIRST: (1, "")}, WAIT_S)
    assert len(commits_of(coordinator)) == 4


def test_commit_of_a_former_member_is_an_error(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """It is not repeated with the same identity."""
    coordinator.answers["OffsetCommit"] = answer_of(lambda *_: int(ErrorCode.ILLEGAL_GENERATION))
    with pytest.raises(transport.LibrdkafkaError, match="ILLEGAL_GENERATION"):
        World(new_thread()).commits.commit({FIRST: (1, "")}, WAIT_S)
    assert len(commits_of(coordinator)) == 1


@pytest.mark.parametrize("is_subscribed", [True, False])
def test_only_assigned_partitions_are_committed_without_a_membership(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread], is_subscribed: bool
) -> None:
    """An empty group would accept the commit of a member that it has removed."""
    world = World(new_thread(), is_subscribed=is_subscribed)
    world.identity = Identity()
    future = world.commits.send({FIRST: (1, "")})
    if is_subscribed:
        with pytest.raises(transport.LibrdkafkaError, match="UNKNOWN_MEMBER_ID"):
            future.result(WAIT_S)
        assert commits_of(coordinator) == []
    else:
        assert future.result(WAIT_S) is None


def test_wait_ends_in_time(coordinator: Any, new_thread: Callable[..., CoordinatorThread]) -> None:
    """The commit continues, which `is_busy` shows."""
    release, world = hold(coordinator), World(new_thread())
    with pytest.raises(TimedOut):
        world.commits.commit({FIRST: (1, "")}, 0.05)
    assert world.commits.is_busy
    release.set()
    world.commits.commit({FIRST: (2, "")}, WAIT_S)
    assert not world.commits.is_busy


def test_committed_offsets_are_looked_up_after_commits(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """The commits that wait are sent before; partitions without an offset are missing."""
    coordinator.answers["OffsetFetch"] = lambda request: OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name="t",
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=0, committed_offset=3, metadata="note"
                    ),
                    OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
                ],
            )
        ]
    )
    release, thread = hold(coordinator), new_thread()
    for number in range(4):
        thread.commit({FIRST: (number, "")}, MEMBER)
    found = thread.committed([FIRST, SECOND])
    thread.commit({FIRST: (9, "")}, MEMBER)
    release.set()
    assert found.result(WAIT_S) == {FIRST: OffsetAndMetadata(3, "note")}
    names = [name for name in coordinator.names() if name.startswith("Offset")]
    at = names.index("OffsetFetch")
    assert commits_of(coordinator)[at - 1] == {FIRST: (3, "")}


def test_refused_lookup_names_the_group(
    coordinator: Any, new_thread: Callable[..., CoordinatorThread]
) -> None:
    """An error that does not pass is raised at once."""
    code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    coordinator.answers["OffsetFetch"] = lambda request: OffsetFetchResponse(error_code=code)
    with pytest.raises(ApiError, match="Group 'g'"):
        new_thread().committed([FIRST]).result(WAIT_S)
