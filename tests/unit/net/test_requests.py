"""Requests between brokers: pipelining, large responses, lost and refused connections."""

import asyncio
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.net.port import Net
from ottla.net.requests import RequestChannel, RequestConnection
from ottla.testing.sim.world import World
from ottla.wire.headers import decode_request_header, encode_response_parts
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

PORT = 9092
Responder = Callable[[int], bytes | None]


class Peer(asyncio.BufferedProtocol):
    """A server that responds to each request with `answer(correlation id)`; None closes."""

    def __init__(self, response: Responder) -> None:
        self._answer = response
        self._buffer = bytearray(64 * 1024)
        self._received = bytearray()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self._received += self._buffer[:nbytes]
        while len(self._received) >= 4:
            (size_bytes,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size_bytes:
                return
            frame = bytes(self._received[4 : 4 + size_bytes])
            del self._received[: 4 + size_bytes]
            response = self._answer(decode_request_header(frame).correlation_id)
            if response is None:
                self._transport.abort()
                return
            self._transport.write(struct.pack(">i", len(response)) + response)

    def eof_received(self) -> bool:
        return False


def api_versions(correlation_id: int) -> bytes:
    return b"".join(encode_response_parts(correlation_id, ApiVersionsResponse(), 0))


def run(scenario: Callable[[Net], Coroutine[Any, Any, None]], response: Responder | None) -> None:
    """Run a scenario on one simulated machine while a peer listens on another."""

    async def whole() -> None:
        peer, client = world.machine("peer"), world.machine("client")
        if response is not None:
            server = response
            await peer.start(lambda: peer.net.listen("", PORT, lambda: Peer(server)))
        await client.start(lambda: scenario(client.net))

    with World(1) as world:
        world.run(whole())


def run_with_silent_peer(scenario: Callable[[Net], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario on one simulated machine while a peer on another never responds."""

    class Silent(Peer):
        def buffer_updated(self, nbytes: int) -> None:
            pass

    async def whole() -> None:
        peer, client = world.machine("peer"), world.machine("client")
        await peer.start(lambda: peer.net.listen("", PORT, lambda: Silent(api_versions)))
        await client.start(lambda: scenario(client.net))

    with World(1) as world:
        world.run(whole())


def channel(net: Net) -> RequestChannel:
    return RequestChannel(net, "peer", PORT, client_id="broker-1")


def test_pipelined_requests_share_a_connection_and_get_their_responses_in_order() -> None:
    """Requests sent before any response arrives are completed in the order of sending."""
    seen: list[int] = []

    def answer(correlation_id: int) -> bytes:
        seen.append(correlation_id)
        return api_versions(correlation_id)

    async def scenario(net: Net) -> None:
        connection = await channel(net).connect()
        futures = [connection.send(ApiVersionsRequest(), 0) for _ in range(5)]
        for response in await asyncio.gather(*futures):
            assert isinstance(response, ApiVersionsResponse)

    run(scenario, answer)
    assert seen == [1, 2, 3, 4, 5]


def test_records_of_a_large_response_are_views_of_the_received_frame() -> None:
    """A response of several megabytes is received whole, and its records are not copied."""
    records = bytes(range(256)) * 12_000

    def answer(correlation_id: int) -> bytes:
        data = PartitionData(partition_index=0, error_code=0, records=records)
        topic = FetchableTopicResponse(topic="orders", partitions=[data])
        response = FetchResponse(responses=[topic])
        return b"".join(encode_response_parts(correlation_id, response, 11))

    async def scenario(net: Net) -> None:
        response = await channel(net).request(FetchRequest(), 11, seconds=30)
        assert isinstance(response, FetchResponse)
        received = response.responses[0].partitions[0].records
        assert isinstance(received, memoryview)
        assert received == records

    run(scenario, answer)


def test_small_and_large_responses_follow_one_another() -> None:
    """Responses of every size around the small buffer's are complete, in order, and kept apart."""
    sizes = (0, 1, 4000, 4040, 4041, 4060, 4096, 9000, 3, 70_000, 2)

    def answer(correlation_id: int) -> bytes:
        size = sizes[correlation_id - 1]
        data = PartitionData(
            partition_index=0, error_code=0, records=bytes([correlation_id]) * size
        )
        topic = FetchableTopicResponse(topic="orders", partitions=[data])
        return b"".join(encode_response_parts(correlation_id, FetchResponse(responses=[topic]), 11))

    async def scenario(net: Net) -> None:
        connection = await channel(net).connect()
        futures = [connection.send(FetchRequest(), 11) for _ in sizes]
        responses = await asyncio.gather(*futures)
        for number, (response, size) in enumerate(zip(responses, sizes, strict=True), 1):
            assert isinstance(response, FetchResponse)
            assert response.responses[0].partitions[0].records == bytes([number]) * size

    run(scenario, answer)


def test_the_first_of_several_time_limits_closes_the_connection() -> None:
    """A later request with a shorter limit is not delayed by the limit of an earlier one."""

    async def scenario(net: Net) -> None:
        loop = asyncio.get_running_loop()
        to_peer = channel(net)
        connection = await to_peer.connect()
        started_at = loop.time()
        patient = connection.send(ApiVersionsRequest(), 0, seconds=30)
        with pytest.raises(TimeoutError):
            await to_peer.request(ApiVersionsRequest(), 0, seconds=2)
        assert 1.9 < loop.time() - started_at < 2.1
        with pytest.raises(ConnectionResetError):
            await patient
        assert not to_peer.is_connected

    run_with_silent_peer(scenario)


def test_a_time_limit_counts_from_its_own_request() -> None:
    """The timer of an earlier request, which got its response, does not end a later one."""
    late: list[int] = []

    def answer(correlation_id: int) -> bytes | None:
        late.append(correlation_id)
        return api_versions(correlation_id)

    async def scenario(net: Net) -> None:
        loop = asyncio.get_running_loop()
        to_peer = channel(net)
        for _ in range(4):
            await to_peer.request(ApiVersionsRequest(), 0, seconds=2)
            await asyncio.sleep(1.5)
        assert to_peer.is_connected
        assert loop.time() > 5

    run(scenario, answer)
    assert late == [1, 2, 3, 4]


def test_requests_fail_when_the_connection_is_lost_and_the_next_one_connects_again() -> None:
    """Every pending request raises ConnectionError, and a later request uses a new connection."""
    connections: list[int] = []

    def answer(correlation_id: int) -> bytes | None:
        connections.append(correlation_id)
        return None if len(connections) == 1 else api_versions(correlation_id)

    async def scenario(net: Net) -> None:
        to_peer = channel(net)
        connection = await to_peer.connect()
        futures = [connection.send(ApiVersionsRequest(), 0) for _ in range(2)]
        for result in await asyncio.gather(*futures, return_exceptions=True):
            assert isinstance(result, ConnectionError)
        assert not to_peer.is_connected
        await to_peer.request(ApiVersionsRequest(), 0, seconds=5)
        assert to_peer.is_connected

    run(scenario, answer)


def test_a_broker_that_does_not_listen_refuses_the_connection() -> None:
    """ConnectionRefusedError distinguishes a dead process from one that does not respond."""

    async def scenario(net: Net) -> None:
        with pytest.raises(ConnectionRefusedError):
            await channel(net).request(ApiVersionsRequest(), 0, seconds=5)

    async def whole() -> None:
        world.machine("peer")
        client = world.machine("client")
        await client.start(lambda: scenario(client.net))

    with World(1) as world:
        world.run(whole())


def test_a_request_without_a_response_times_out_and_closes_the_connection() -> None:
    """After a timeout a later response could be taken for another request's."""

    async def scenario(net: Net) -> None:
        to_peer = channel(net)
        with pytest.raises(TimeoutError):
            await to_peer.request(ApiVersionsRequest(), 0, seconds=2)
        assert not to_peer.is_connected

    run_with_silent_peer(scenario)


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(lambda _: api_versions(99), id="another request's"),
        pytest.param(lambda _: b"\0\0", id="too short"),
    ],
)
def test_a_response_that_cannot_belong_to_the_request_closes_the_connection(
    response: Responder,
) -> None:
    """A wrong correlation id or a body that cannot be decoded fails the request."""

    async def scenario(net: Net) -> None:
        to_peer = channel(net)
        with pytest.raises(ConnectionError):
            await to_peer.request(ApiVersionsRequest(), 0, seconds=5)
        assert not to_peer.is_connected

    run(scenario, response)


def test_a_new_connection_is_introduced_before_it_is_used() -> None:
    """The first request of the connection is the introduction's; its failure fails the request."""
    introduced: list[RequestConnection] = []

    async def introduce(connection: RequestConnection) -> None:
        if introduced:
            raise ConnectionAbortedError("not accepted")
        introduced.append(connection)
        await connection.send(ApiVersionsRequest(), 0)

    async def scenario(net: Net) -> None:
        to_peer = RequestChannel(net, "peer", PORT, client_id="broker-1", introduce=introduce)
        await to_peer.request(ApiVersionsRequest(), 0, seconds=5)
        assert seen == [1, 2]
        to_peer.disconnect()
        with pytest.raises(ConnectionAbortedError):
            await to_peer.request(ApiVersionsRequest(), 0, seconds=5)
        assert not to_peer.is_connected

    seen: list[int] = []

    def answer(correlation_id: int) -> bytes:
        seen.append(correlation_id)
        return api_versions(correlation_id)

    run(scenario, answer)


def test_a_closed_channel_refuses_requests() -> None:
    """After `close` no connection is established again."""

    async def scenario(net: Net) -> None:
        to_peer = channel(net)
        await to_peer.request(ApiVersionsRequest(), 0, seconds=5)
        to_peer.close()
        with pytest.raises(ConnectionAbortedError):
            await to_peer.request(ApiVersionsRequest(), 0, seconds=5)

    run(scenario, api_versions)
