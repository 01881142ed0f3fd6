"""One blocking connection: version negotiation, responses, and an error message for every failure."""

import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError, ProtocolError
from ottla.client.bootstrap import Address, parse_bootstrap
from ottla.client.connection import Connection
from ottla.client.errors import NoBroker, NotReachable, TimedOut, Unsupported
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from tests.client.strangers import server

LIST_GROUPS = 16


def _groups(request: Any) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[ListedGroup(group_id="g", protocol_type="consumer")])


def test_call_uses_the_highest_common_version(new_broker: Callable) -> None:
    """The broker's table of versions is the upper bound."""
    broker = new_broker(versions={18: (0, 4), LIST_GROUPS: (0, 2)})
    broker.answers["ListGroups"] = _groups
    connection = Connection(broker.address)
    response = connection.call(ListGroupsRequest(), ListGroupsResponse)
    assert [group.group_id for group in response.groups] == ["g"]
    assert broker.requests[-1][:2] == ("ListGroups", 2)
    connection.close()


def test_caller_can_select_an_older_version(broker: Any) -> None:
    """The option `max_version` selects an older request with other fields."""
    broker.answers["ListGroups"] = _groups
    connection = Connection(broker.address)
    connection.call(ListGroupsRequest(), ListGroupsResponse, max_version=3)
    assert broker.requests[-1][1] == 3
    connection.close()


def test_broker_with_an_old_handshake_is_supported(new_broker: Callable) -> None:
    """The broker responds to the unknown version in version 0, and the response has its versions."""
    broker = new_broker(versions={18: (0, 0), LIST_GROUPS: (0, 1)})
    broker.answers["ListGroups"] = _groups
    connection = Connection(broker.address)
    assert connection.version_of(ListGroupsRequest) == 1
    connection.close()


def test_request_that_the_broker_does_not_support_is_not_sent(new_broker: Callable) -> None:
    """Nothing is sent, and the error names the API."""
    broker = new_broker(versions={18: (0, 4)})
    connection = Connection(broker.address)
    with pytest.raises(Unsupported, match="does not offer ListGroups"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)
    connection.close()


def test_versions_without_overlap_are_an_error_with_both_ranges(new_broker: Callable) -> None:
    """A broker of the far future has no version in common with the client."""
    broker = new_broker(versions={18: (0, 4), LIST_GROUPS: (90, 91)})
    connection = Connection(broker.address)
    with pytest.raises(Unsupported, match="90 to 91; Ottla speaks 0 to 5"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)
    connection.close()


def test_port_without_listener_has_its_own_error(free_port: Address) -> None:
    """The message has the address; the command line adds the advice."""
    with pytest.raises(NotReachable, match=f"nothing listens on {free_port}"):
        Connection(free_port)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (socket.gaierror(-2, "Name or service not known"), "the host of h:1 is not known: Name"),
        (TimeoutError(), r"h:1 does not respond \(5 s\)"),
        (OSError(113, "No route to host"), "h:1 cannot be reached: No route to host"),
    ],
)
def test_each_connection_failure_has_its_message(
    monkeypatch: pytest.MonkeyPatch, error: OSError, sentence: str
) -> None:
    """A misspelt name, a firewall and a missing route are different from a missing broker."""

    def refuse(*words: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(NotReachable, match=sentence):
        Connection(Address("h", 1))


def test_silent_broker_times_out(silent_port: Address) -> None:
    """The handshake has a timeout of its own."""
    with pytest.raises(TimedOut, match="did not respond to ApiVersions within"):
        Connection(silent_port, timeout_s=0.05)


def test_missing_response_closes_the_connection(broker: Any) -> None:
    """A late response would be taken for the next request's."""
    never = threading.Event()
    broker.answers["ListGroups"] = lambda request: never.wait(5) and None
    connection = Connection(broker.address)
    with pytest.raises(TimedOut):
        connection.call(ListGroupsRequest(), ListGroupsResponse, timeout_s=0.05)
    never.set()
    with pytest.raises(NotReachable, match="is closed"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)


def test_broker_that_disconnects_is_reported(broker: Any) -> None:
    """The broker may die between request and response."""
    broker.answers["ListGroups"] = lambda request: None
    connection = Connection(broker.address)
    with pytest.raises(NotReachable, match="before it responded"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)
    assert not connection.is_open


def test_response_to_another_request_closes_the_connection(broker: Any) -> None:
    """After a mismatch of correlation ids the bytes on the socket cannot be trusted."""
    broker.answers["ListGroups"] = lambda request: struct.pack(">ib", 4711, 0) + bytes(100)
    connection = Connection(broker.address)
    with pytest.raises(ProtocolError, match="responded to request 4711"):
        connection.call(ListGroupsRequest(), ListGroupsResponse)
    assert not connection.is_open


@pytest.mark.parametrize("size", [0, 3, 5, 8])
def test_truncated_response_is_a_protocol_error(broker: Any, size: int) -> None:
    """A frame of any length raises no other error."""
    broker.answers["ListGroups"] = lambda request: (struct.pack(">ib", 2, 0) + bytes(20))[:size]
    connection = Connection(broker.address)
    with pytest.raises(ProtocolError):
        connection.call(ListGroupsRequest(), ListGroupsResponse)


@pytest.mark.parametrize(
    ("response", "sentence", "is_tls"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server listens on {}, not a broker", False),
        (b"\x15\x03\x03\x00\x02\x02\x0a", "{} speaks TLS", True),
    ],
)
def test_server_of_another_protocol_is_named(response: bytes, sentence: str, is_tls: bool) -> None:
    """The first bytes are no valid length of a response."""
    with server(response) as address:
        with pytest.raises(NoBroker, match=sentence.format(address)) as raised:
            Connection(*parse_bootstrap(address))
        assert raised.value.is_tls is is_tls


def test_server_of_an_unknown_protocol_is_a_protocol_error() -> None:
    """The sentence has the length that the first bytes would be."""
    with (
        server(b"\x7f\x7f\x7f\x7f") as address,
        pytest.raises(NotReachable, match="does not speak Kafka's protocol: a length of"),
    ):
        Connection(*parse_bootstrap(address))


@pytest.mark.parametrize("name", ["x" * 40_000, "\udcff"])
def test_value_that_no_request_can_contain(broker: Any, name: str) -> None:
    """The client raises an error with the field and the beginning of the value."""
    connection = Connection(broker.address)
    with pytest.raises(ApiError, match=r"cannot be sent as states_filter\[0\] of ListGroups: "):
        connection.call(ListGroupsRequest(states_filter=[name]), ListGroupsResponse)
    connection.close()
