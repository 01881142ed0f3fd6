"""One blocking connection: negotiation, answers, and a sentence for everything that goes wrong."""

import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ProtocolError
from ottla.client.bootstrap import Address
from ottla.client.connection import Connection
from ottla.client.errors import NotReachable, TimedOut, Unsupported
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

LIST_GROUPS = 16


def _groups(request: Any) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[ListedGroup(group_id="g", protocol_type="consumer")])


def test_a_call_uses_the_highest_version_that_both_sides_speak(new_broker: Callable) -> None:
    """The broker's table bounds the version from above, whatever this side could do."""
    broker = new_broker(versions={18: (0, 4), LIST_GROUPS: (0, 2)})
    broker.answers["ListGroups"] = _groups
    connection = Connection(broker.address)
    response = connection.call(ListGroupsRequest(), ListGroupsResponse)
    assert [group.group_id for group in response.groups] == ["g"]
    assert broker.requests[-1][:2] == ("ListGroups", 2)
    connection.close()


def test_the_caller_can_ask_for_an_older_version(broker: Any) -> None:
    """`max_version` bounds the version for requests whose newer forms ask differently."""
    broker.answers["ListGroups"] = _groups
    connection = Connection(broker.address)
    connection.call(ListGroupsRequest(), ListGroupsResponse, max_version=3)
    assert broker.requests[-1][1] == 3
    connection.close()


def test_a_broker_that_knows_only_old_handshakes_is_understood(new_broker: Callable) -> None:
    """It answers the unknown version in version 0, and that answer holds its versions."""
    broker = new_broker(versions={18: (0, 0), LIST_GROUPS: (0, 1)})
    broker.answers["ListGroups"] = _groups
    connection = Connection(broker.address)
    assert connection.version_of(ListGroupsRequest) == 1
    connection.close()


def test_a_request_that_the_broker_does_not_offer_is_refused_here(new_broker: Callable) -> None:
    """Nothing is sent; the error names the API."""
    broker = new_broker(versions={18: (0, 4)})
    connection = Connection(broker.address)
    with pytest.raises(Unsupported, match="does not offer ListGroups"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)
    connection.close()


def test_versions_without_overlap_are_refused_with_both_ranges(new_broker: Callable) -> None:
    """A broker of the far future offers only what we do not speak."""
    broker = new_broker(versions={18: (0, 4), LIST_GROUPS: (90, 91)})
    connection = Connection(broker.address)
    with pytest.raises(Unsupported, match="90 to 91; Ottla speaks 0 to 5"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)
    connection.close()


def test_a_port_without_listener_is_told_as_such(free_port: Address) -> None:
    """The sentence names the address; what to do about it is for the command line to say."""
    with pytest.raises(NotReachable, match=f"nothing listens on {free_port}"):
        Connection(free_port)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (socket.gaierror(-2, "Name or service not known"), "the host of h:1 is not known: Name"),
        (TimeoutError(), r"h:1 does not answer \(5 s\)"),
        (OSError(113, "No route to host"), "h:1 cannot be reached: No route to host"),
    ],
)
def test_each_way_not_to_connect_has_its_sentence(
    monkeypatch: pytest.MonkeyPatch, error: OSError, sentence: str
) -> None:
    """A misspelt name, a firewall and a missing route are not a missing broker."""

    def refuse(*words: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(NotReachable, match=sentence):
        Connection(Address("h", 1))


def test_a_broker_that_says_nothing_is_given_up(silent_port: Address) -> None:
    """The handshake has its own time limit."""
    with pytest.raises(TimedOut, match="did not answer ApiVersions within"):
        Connection(silent_port, timeout_s=0.05)


def test_an_answer_that_does_not_come_closes_the_connection(broker: Any) -> None:
    """A late answer would be taken for that of the next request."""
    never = threading.Event()
    broker.answers["ListGroups"] = lambda request: never.wait(5) and None
    connection = Connection(broker.address)
    with pytest.raises(TimedOut):
        connection.call(ListGroupsRequest(), ListGroupsResponse, timeout_s=0.05)
    never.set()
    with pytest.raises(NotReachable, match="is closed"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)


def test_a_broker_that_hangs_up_is_reported(broker: Any) -> None:
    """Between request and answer the broker may die."""
    broker.answers["ListGroups"] = lambda request: None
    connection = Connection(broker.address)
    with pytest.raises(NotReachable, match="before it answered"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)
    assert not connection.is_open


def test_an_answer_to_another_request_closes_the_connection(broker: Any) -> None:
    """Correlation ids must match; after a mismatch nothing on the socket can be trusted."""
    broker.answers["ListGroups"] = lambda request: struct.pack(">ib", 4711, 0) + bytes(100)
    connection = Connection(broker.address)
    with pytest.raises(ProtocolError, match="answered request 4711"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)
    assert not connection.is_open


@pytest.mark.parametrize("size", [0, 3, 5, 8])
def test_an_answer_that_ends_too_early_is_a_protocol_error(broker: Any, size: int) -> None:
    """However short the frame is, nothing else escapes."""
    broker.answers["ListGroups"] = lambda request: (struct.pack(">ib", 2, 0) + bytes(20))[:size]
    connection = Connection(broker.address)
    with pytest.raises(ProtocolError):
        connection.call(ListGroupsRequest(), ListGroupsResponse)


def test_a_web_server_is_not_taken_for_a_broker() -> None:
    """Its first bytes read as a length that no answer has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])

        def serve() -> None:
            opened, _ = listener.accept()
            opened.recv(1024)
            opened.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            opened.close()

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(NotReachable, match="does not speak Kafka's protocol"):
            Connection(address)
