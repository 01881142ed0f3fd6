"""Passwords are checked late after failures: the gate and real connections on virtual time."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.clock import RealClock
from ottla.base.rng import SeededRng
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.net.admission.attempts import AttemptLimits, Attempts
from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.endpoint import Endpoint
from ottla.net.limits import Limits
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.unsent import UnsentBudget
from ottla.server.authentication import gate as gates
from ottla.server.authentication.gate import Gate
from ottla.server.authentication.identity import FailedLogin, LoginCounts, user_of
from ottla.server.authentication.logins import Logins
from ottla.server.handlers import sasl_authenticate
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.net import SimNetwork
from ottla.wire import headers, schema
from ottla.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tests.unit.net.test_receive_budget import Client

PORT = 9092
SASL = ListenerSecurity(("PLAIN", "SCRAM-SHA-256"), {"ann": "secret", "bob": "other"})
RAW, FRAMED, LARGE = b"raw", b"\0\x11\0\1 begin", 200_000
_DELAY = "connection.failed.authentication.delay.ms"


class LoopClock(RealClock):
    """The clock of a loop on virtual time."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class Site:
    """A listener with SASL; its dispatcher begins an exchange, and echoes frames afterwards."""

    def __init__(self) -> None:
        self.network = SimNetwork(SeededRng(1))
        self.counts, self.clock = LoginCounts(), LoopClock()
        self.attempts = Attempts(AttemptLimits(first_seconds=0.1, seconds_max=10.0, free_count=5))
        self._logins = Logins(
            {"SASL": SASL}, dict, SeededRng(1), self.clock, counts={"SASL": self.counts}
        )
        limits = gates.AuthenticationLimits(65_536, 1_000_000, 0.1)
        gate = Gate(
            self,
            SASL,
            limits,
            self.clock.monotonic,
            self.counts,
            lambda _, login: self.reported.append(login),
            self.attempts,
        )
        self.endpoint = Endpoint(
            "SASL",
            limits=Limits(frame_bytes_max=65_536),
            budget=ReceiveBudget(1_000_000),
            unsent=UnsentBudget(1_000_000),
            buffers=ReceiveBuffers(),
        )
        self.endpoint.is_gated = True
        self._gate = gate
        self.users: list[str] = []
        self.reported: list[FailedLogin] = []

    async def open(self) -> None:
        await self.endpoint.open(self.network.host("broker"), "broker", PORT)
        self.endpoint.serve(self._gate)

    def frame(self, connection: Connection, frame: memoryview) -> None:
        """Take the part of the dispatcher."""
        if connection.identity is None:
            is_raw = bytes(frame[4:]).strip() == RAW
            connection.identity = self._logins.begin("SASL", "PLAIN", is_raw=is_raw)
            connection.send([b"begun"])
        elif connection.identity.session is None:
            self._authenticate(connection, frame)
        else:
            self.users.append(user_of(connection))
            connection.send([bytes(frame)])

    def _authenticate(self, connection: Connection, frame: memoryview) -> None:
        header = headers.decode_request_header(frame)
        request, _ = schema.decode(SaslAuthenticateRequest, 1, frame, header.body_position)
        options = SimpleNamespace(integer={_DELAY: 100}.__getitem__)
        audit = SimpleNamespace(login_failed=lambda *event: self.reported.append(event[-1]))
        broker = SimpleNamespace(options=options, audit=audit)
        context = cast(Any, SimpleNamespace(connection=connection, broker=broker, client_id="test"))
        result = sasl_authenticate.handle(context, request)
        if isinstance(result, SaslAuthenticateResponse):
            connection.send(headers.encode_response_parts(header.correlation_id, result, 1))
            return
        reply = connection.defer()
        result.add_done_callback(
            lambda done: reply.send(
                headers.encode_response_parts(header.correlation_id, done.result(), 1)
            )
        )

    async def guess(self, host: str, user: str, password: str) -> tuple[float, int]:
        """Log in with PLAIN; return the seconds that it took, and the error code."""
        _, client = await self.network.host(host).connect("broker", PORT, Answers)
        assert isinstance(client, Answers)
        begin = asyncio.get_running_loop().time()
        client.ask(FRAMED)
        assert await client.answer() == b"begun"
        message = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode())
        client.ask(headers.encode_request(message, 1, 7, "test"))
        data = await client.answer()
        _, response = headers.decode_response(SaslAuthenticateResponse, 1, memoryview(data))
        seconds = asyncio.get_running_loop().time() - begin
        if not response.error_code:
            # The first request after a login may be larger than those before it.
            client.ask(b"\0\3\0\1" + bytes(LARGE))
            assert len(await client.answer()) == 4 + LARGE
        client.transport.close()
        return seconds, response.error_code


class Answers(Client):
    """A client that keeps what it receives."""

    def __init__(self) -> None:
        super().__init__()
        self._data = b""

    def buffer_updated(self, nbytes: int) -> None:
        self._data += bytes(self._buffer[:nbytes])
        super().buffer_updated(nbytes)

    def ask(self, body: bytes) -> None:  # type: ignore[override]
        self.transport.write(struct.pack(">i", len(body)) + body)

    async def answer(self) -> bytes:
        """Return the next response; empty if the broker has disconnected."""
        while len(self._data) < 4 or len(self._data) < 4 + int.from_bytes(self._data[:4], "big"):
            if self.is_lost:
                return b""
            self._changed.clear()
            await self._changed.wait()
        size = int.from_bytes(self._data[:4], "big")
        answer, self._data = self._data[4 : 4 + size], self._data[4 + size :]
        return answer


Scene = Callable[[Site], Awaitable[None]]


@pytest.fixture
def play() -> Callable[[Scene], None]:
    """Run a scenario beside a listener with SASL on virtual time."""

    async def run(scene: Scene) -> None:
        site = Site()
        await site.open()
        await scene(site)
        await site.endpoint.close(5.0)

    def run_on_virtual_time(scene: Scene) -> None:
        with SimLoop(SeededRng(1)) as loop:
            loop.run(run(scene))
            loop.raise_failures()

    return run_on_virtual_time


def test_right_password_is_checked_at_once(play) -> None:
    """Without earlier failures no client waits, and the first request may be large."""

    async def scene(site: Site) -> None:
        seconds, code = await site.guess("home", "ann", "secret")
        assert (code, site.users) == (0, ["ann"])
        assert seconds < 0.2
        assert site.counts.delayed == 0

    play(scene)


def test_guesses_in_parallel_get_slower(play) -> None:
    """Forty connections guess for ten seconds: few passwords are checked."""

    async def scene(site: Site) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + 10

        async def attack() -> None:
            while loop.time() < end:
                assert (await site.guess("attacker", "ann", "wrong"))[1] != 0

        await asyncio.gather(*(attack() for _ in range(40)))
        checked = site.counts.failed - site.counts.refused
        assert checked < 20
        assert site.counts.refused > 500
        # The audit log has the name also if the password was not checked.
        assert len(site.reported) == site.counts.failed
        assert {login.user for login in site.reported} == {"ann"}
        # From elsewhere the user logs in as before.
        seconds, code = await site.guess("home", "ann", "secret")
        assert code == 0
        assert seconds < 1.5
        seconds, code = await site.guess("home", "bob", "other")
        assert code == 0
        assert seconds < 0.2

    play(scene)


def test_right_password_is_no_faster_than_a_wrong_one(play) -> None:
    """Otherwise a quick response would show which password is right."""

    async def scene(site: Site) -> None:
        for _ in range(8):
            await site.guess("home", "ann", "wrong")
        wrong, _ = await site.guess("home", "ann", "wrong")
        seconds, code = await site.guess("home", "ann", "secret")
        assert code == 0
        assert seconds > wrong - 0.1 > 0.5
        # It has the password, so the failures are forgotten, and the connection works.
        assert site.users == ["ann"]
        assert (await site.guess("home", "ann", "secret"))[0] < 0.2

    play(scene)


def test_message_without_a_header_waits_too(play) -> None:
    """After version 0 of the handshake."""

    async def scene(site: Site) -> None:
        for _ in range(12):
            await site.guess("home", "ann", "wrong")
        checked = site.counts.delayed
        _, client = await site.network.host("home").connect("broker", PORT, Answers)
        assert isinstance(client, Answers)
        client.ask(b"\0\x11\0\1" + RAW)
        assert await client.answer() == b"begun"
        begin = asyncio.get_running_loop().time()
        client.ask(b"\0ann\0wrong")
        assert await client.answer() == b""
        assert asyncio.get_running_loop().time() - begin > 1.0
        assert site.counts.delayed == checked + 1

    play(scene)


def test_connection_that_ends_while_it_waits_is_forgotten(play) -> None:
    """Its message is not handled any more."""

    async def scene(site: Site) -> None:
        for _ in range(9):
            await site.guess("home", "ann", "wrong")
        failed = site.counts.failed
        _, client = await site.network.host("home").connect("broker", PORT, Answers)
        assert isinstance(client, Answers)
        client.ask(FRAMED)
        await client.answer()
        message = SaslAuthenticateRequest(auth_bytes=b"\0ann\0secret")
        client.ask(headers.encode_request(message, 1, 7, "test"))
        await asyncio.sleep(0.1)
        for connection in site.endpoint.active_since(0):
            connection.abort()
        await asyncio.sleep(20)
        assert site.counts.failed == failed
        assert site.counts.succeeded == 0

    play(scene)
