"""Routing to any broker, the controller or a coordinator, with retries while the cluster changes."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.bootstrap import Address
from ottla.client.brokers import Brokers
from ottla.client.connection import SilentBrokers
from ottla.client.errors import NotReachable, TimedOut
from ottla.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorResponse
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


@pytest.fixture
def pair(new_broker: Callable[..., Any]) -> tuple[Any, Any]:
    """Return two brokers that know each other; the second is the controller."""
    first, second = new_broker(1), new_broker(2)
    first.peers = second.peers = [first, second]
    first.controller_id = second.controller_id = 2
    return first, second


def _deleted(request: Any, code: int = 0) -> DeleteGroupsResponse:
    result = DeletableGroupResult(group_id=request.groups_names[0], error_code=code)
    return DeleteGroupsResponse(results=[result])


def test_request_is_sent_to_the_controller(pair: tuple[Any, Any]) -> None:
    """One bootstrap address is enough; the metadata has the other brokers."""
    first, second = pair
    second.answers["DeleteGroups"] = _deleted
    with Brokers(first.bootstrap) as brokers:
        brokers.ask_controller(DeleteGroupsRequest(groups_names=["g"]), DeleteGroupsResponse)
    assert (first.names(), second.names()) == (["Metadata"], ["DeleteGroups"])


def test_any_broker_is_used_without_a_controller(broker: Any) -> None:
    """In a cluster without a known controller, a broker forwards the request or returns a retriable
    error.
    """
    broker.controller_id = -1
    broker.answers["DeleteGroups"] = _deleted
    with Brokers(broker.bootstrap) as brokers:
        brokers.ask_controller(DeleteGroupsRequest(groups_names=["g"]), DeleteGroupsResponse)
    assert broker.names() == ["Metadata", "DeleteGroups"]


def test_a_coordinator_is_looked_up_once(pair: tuple[Any, Any]) -> None:
    """The coordinator is cached until an error shows that it is out of date."""
    first, second = pair
    first.answers["FindCoordinator"] = lambda request: FindCoordinatorResponse(
        node_id=2, host=second.address.host, port=second.address.port
    )
    second.answers["DeleteGroups"] = _deleted
    request = DeleteGroupsRequest(groups_names=["g"])
    with Brokers(first.bootstrap) as brokers:
        for _ in range(2):
            brokers.ask_coordinator("g", request, DeleteGroupsResponse)
    assert first.names() == ["FindCoordinator"]
    assert second.names() == ["DeleteGroups", "DeleteGroups"]


def test_unavailable_coordinator_is_an_error_with_its_reason(broker: Any) -> None:
    """The error has the broker's own message."""
    broker.answers["FindCoordinator"] = lambda request: FindCoordinatorResponse(
        error_code=ErrorCode.INVALID_GROUP_ID, error_message="no such name"
    )
    with Brokers(broker.bootstrap) as brokers, pytest.raises(ApiError, match="no such name"):
        brokers.ask_coordinator("", DeleteGroupsRequest(groups_names=[""]), DeleteGroupsResponse)


def test_transient_errors_are_retried() -> None:
    """A coordinator that still loads responds after a moment."""
    responses = iter([ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), None])

    def attempt() -> str:
        error = next(responses)
        if error is not None:
            raise error
        return "done"

    assert Brokers("unused:1").retry(attempt) == "done"


def test_permanent_errors_are_not_retried() -> None:
    """An unknown topic is not retried, whatever the protocol's table of errors says."""
    calls = []

    def attempt() -> None:
        calls.append(1)
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    with pytest.raises(ApiError):
        Brokers("unused:1").retry(attempt)
    assert calls == [1]


def test_retries_end_at_the_timeout() -> None:
    """After the timeout the last error is raised."""

    def attempt() -> None:
        raise ApiError(ErrorCode.NOT_CONTROLLER)

    with pytest.raises(ApiError, match="not the controller"):
        Brokers("unused:1", timeout_s=0.1).retry(attempt)


def test_the_next_bootstrap_address_is_tried(broker: Any, free_port: Address) -> None:
    """One dead address among several is no failure."""
    with Brokers(f"{free_port},{broker.bootstrap}") as brokers:
        assert brokers.any_connection().address == broker.address


def test_requests_to_any_broker_do_not_wait_for_a_frozen_one_again(broker: Any) -> None:
    """A frozen process accepts connections and never responds: only the first request waits."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        address = Address(*frozen.getsockname())
        silence = SilentBrokers(lambda: 0.0)
        for _ in range(2):
            with Brokers(f"{address},{broker.bootstrap}", timeout_s=0.5) as brokers:
                brokers.silence = silence
                assert brokers.metadata().brokers
    assert silence.timeouts == 1
    assert silence.is_silent(address)


def test_metadata_comes_from_another_broker_if_the_connected_one_freezes(
    pair: tuple[Any, Any],
) -> None:
    """The request is sent again within the time of the call, and later ones avoid that broker."""
    first, second = pair
    with Brokers(first.bootstrap, timeout_s=1) as brokers:
        brokers.metadata()
        release = threading.Event()
        first.answers["Metadata"] = lambda request: None if release.wait(10) else b""
        try:
            assert brokers.metadata().brokers
            assert brokers.metadata().brokers
        finally:
            release.set()
        assert brokers.silence.timeouts == 1
    assert second.names() == ["Metadata", "Metadata"]


def test_a_wrong_address_fails_at_once(free_port: Address) -> None:
    """If no broker has ever responded, the client does not wait."""
    with (
        Brokers(str(free_port), timeout_s=60) as brokers,
        pytest.raises(NotReachable, match="nothing listens"),
    ):
        brokers.retry(brokers.metadata)


def test_proven_address_is_retried(broker: Any) -> None:
    """A restarting broker is not a wrong address, even if it never responded to this client or only
    listens.
    """
    with Brokers(broker.bootstrap, is_proven=True) as brokers:
        tries = iter([NotReachable("nothing listens"), TimedOut("it does not answer"), None])

        def attempt() -> Any:
            error = next(tries)
            if error is not None:
                raise error
            return brokers.metadata()

        assert brokers.retry(attempt).brokers


def test_unreachable_advertised_address_is_explained(
    new_broker: Callable[..., Any], free_port: Address
) -> None:
    """The bootstrap address responds and the advertised one does not: the most frequent problem of
    users.
    """
    first, lost = new_broker(1), new_broker(2)
    lost.address = free_port
    first.peers, first.controller_id = [first, lost], 2
    with (
        Brokers(first.bootstrap) as brokers,
        pytest.raises(NotReachable, match=r"broker 2 of .* says that clients reach it there"),
    ):
        brokers.ask_controller(DeleteGroupsRequest(groups_names=["g"]), DeleteGroupsResponse)


def _topics(**partitions: list[int]) -> Callable[[Any], MetadataResponse]:
    def answer(request: Any) -> MetadataResponse:
        return MetadataResponse(
            topics=[
                MetadataResponseTopic(
                    name=item.name,
                    error_code=0 if item.name in partitions else 3,
                    partitions=[
                        MetadataResponsePartition(partition_index=index, leader_id=leader)
                        for index, leader in enumerate(partitions.get(item.name, []))
                    ],
                )
                for item in request.topics
            ]
        )

    return answer


def test_leaders_are_known_by_partition(broker: Any) -> None:
    """Requests for several partitions are split by their leaders."""
    broker.answers["Metadata"] = _topics(a=[1, 2], b=[3])
    with Brokers(broker.bootstrap) as brokers:
        leaders = brokers.leaders([("a", 1), ("b", 0)])
    assert leaders == {("a", 1): 2, ("b", 0): 3}


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (("c", 0), "There is no topic 'c'"),
        (("a", 2), "Topic 'a' has no partition 2"),
        (("a", 1), "a-1 has no leader"),
    ],
)
def test_unknown_partition_is_named(broker: Any, place: tuple[str, int], sentence: str) -> None:
    """Unknown topic, unknown partition and missing leader have three different messages."""
    broker.answers["Metadata"] = _topics(a=[1, -1])
    with Brokers(broker.bootstrap) as brokers, pytest.raises(ApiError, match=sentence):
        brokers.leaders([place])


def test_metadata_never_creates_a_topic(broker: Any) -> None:
    """A metadata request must not create a topic."""
    broker.answers["Metadata"] = _topics(a=[1])
    with Brokers(broker.bootstrap) as brokers:
        brokers.topic("a")
    assert broker.requests[-1][2].allow_auto_topic_creation is False


def test_moved_broker_is_looked_up_again(
    new_broker: Callable[..., Any], free_port: Address
) -> None:
    """A broker that has restarted with another address is found by a retry."""
    first, moved = new_broker(1), new_broker(2)
    current, moved.address = moved.address, free_port
    first.peers = [first, moved]

    def metadata(request: Any) -> MetadataResponse:
        response = first.metadata(request)
        moved.address = current
        return response

    first.answers["Metadata"] = metadata
    moved.answers["DeleteGroups"] = _deleted
    request = DeleteGroupsRequest(groups_names=["g"])
    with Brokers(first.bootstrap) as brokers:
        brokers.retry(lambda: brokers.ask_node(2, request, DeleteGroupsResponse))
    assert moved.names() == ["DeleteGroups"]


def test_moved_coordinator_is_asked_at_its_new_address(
    new_broker: Callable[..., Any], free_port: Address
) -> None:
    """The response of FindCoordinator is newer than the metadata."""
    first, moved = new_broker(1), new_broker(2)
    current, moved.address = moved.address, free_port
    first.peers = [first, moved]
    first.answers["FindCoordinator"] = lambda request: FindCoordinatorResponse(
        node_id=2, host=current.host, port=current.port
    )
    moved.answers["DeleteGroups"] = _deleted
    request = DeleteGroupsRequest(groups_names=["g"])
    with Brokers(first.bootstrap) as brokers:
        brokers.metadata()
        brokers.ask_coordinator("g", request, DeleteGroupsResponse)
    assert moved.names() == ["DeleteGroups"]


def test_node_ids_are_those_of_now(pair: tuple[Any, Any]) -> None:
    """A client that runs for days does not ask brokers that have left."""
    first, _ = pair
    with Brokers(first.bootstrap) as brokers:
        assert brokers.node_ids() == [1, 2]
        first.peers = [first]
        assert brokers.node_ids() == [1]


def test_several_brokers_work_at_the_same_time(pair: tuple[Any, Any]) -> None:
    """Every broker receives its request before the first response is read."""
    first, second = pair
    both = threading.Barrier(2, timeout=10)

    def delete(request: Any) -> DeleteGroupsResponse:
        both.wait()
        return _deleted(request)

    first.answers["DeleteGroups"] = second.answers["DeleteGroups"] = delete
    requests = {node: DeleteGroupsRequest(groups_names=[f"g{node}"]) for node in (1, 2)}
    with Brokers(first.bootstrap) as brokers:
        responses = brokers.ask_nodes(requests, DeleteGroupsResponse)
    names = {node: row.results[0].group_id for node, row in responses.items()}
    assert names == {1: "g1", 2: "g2"}


def test_an_unread_response_is_not_that_of_a_later_request(pair: tuple[Any, Any]) -> None:
    """If one of several brokers fails, the connections to the others are replaced."""
    first, second = pair
    second.answers["DeleteGroups"] = _deleted
    first.answers["DeleteGroups"] = lambda request: None
    requests = {node: DeleteGroupsRequest(groups_names=[f"g{node}"]) for node in (1, 2)}
    with Brokers(first.bootstrap) as brokers:
        with pytest.raises(NotReachable):
            brokers.ask_nodes(requests, DeleteGroupsResponse)
        later = DeleteGroupsRequest(groups_names=["later"])
        response = brokers.ask_node(2, later, DeleteGroupsResponse)
    assert response.results[0].group_id == "later"


def test_no_request_is_sent_if_one_of_several_brokers_is_unknown(pair: tuple[Any, Any]) -> None:
    """The lookup of its address does not read the response to another request."""
    first, _ = pair
    first.answers["DeleteGroups"] = _deleted
    requests = {node: DeleteGroupsRequest(groups_names=["g"]) for node in (1, 3)}
    with Brokers(first.bootstrap) as brokers:
        with pytest.raises(ApiError, match="Broker 3 is not running"):
            brokers.ask_nodes(requests, DeleteGroupsResponse)
        assert "DeleteGroups" not in first.names()
        response = brokers.ask_node(1, requests[1], DeleteGroupsResponse)
    assert response.results[0].group_id == "g"
