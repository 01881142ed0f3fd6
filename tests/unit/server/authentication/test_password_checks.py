"""Checks of passwords in another thread: their order, and the gate that waits for them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.base.rng import SeededRng
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.net.admission.attempts import AttemptLimits, Attempts
from ottla.net.connection import Connection
from ottla.security import scram
from ottla.server.authentication.gate import AuthenticationLimits, Gate
from ottla.server.authentication.identity import LoginCounts, is_known
from ottla.server.authentication.logins import Logins
from ottla.server.authentication.password_checks import PasswordChecks
from ottla.server.authentication.plain_users import PlainUsers
from tests.handlers.logs import scram_users


class Background:
    """Another thread whose work ends when the test says so."""

    def __init__(self) -> None:
        self._running: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    def __len__(self) -> int:
        return len(self._running)

    def __call__(self, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        done = asyncio.get_running_loop().create_future()
        self._running.append((work, done))
        return done

    async def finish(self) -> None:
        work, done = self._running.pop(0)
        done.set_result(work())
        await asyncio.sleep(0)


class Line:
    """A connection with a client at the gate."""

    peer_address = ("127.0.0.1", 1)
    is_closed = False
    certificate = None

    def __init__(self, identity: Any) -> None:
        self.identity = identity
        self.events: list[str] = []

    def defer(self) -> "Line":
        self.events.append("deferred")
        return self

    def send_nothing(self) -> None:
        self.events.append("continued")

    def send(self, parts: tuple[bytes, ...]) -> None:
        self.events.append("sent")

    def pass_to(self, handler: object, frame_bytes_max: int) -> None:
        self.events.append("admitted")

    def close(self, reason: str) -> None:
        self.is_closed = True


def test_one_check_runs_at_a_time_and_addresses_take_turns() -> None:
    """A login from one address waits for one guess of another, not for all of its guesses."""

    async def scenario() -> None:
        background = Background()
        checks = PasswordChecks(background)
        done: list[str] = []
        for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
            checks.submit(name[0], lambda: None, lambda name=name: done.append(name))
            assert len(background) == 1
        while background:
            await background.finish()
        assert done == ["a1", "a2", "b1", "c1", "a3", "b2"]

    asyncio.run(scenario())


def test_stop_of_the_broker_ends_the_checks() -> None:
    """A check that is cancelled continues no exchange, and starts no other check."""

    async def scenario() -> None:
        background, done = asyncio.get_running_loop().create_future(), list[str]()
        checks = PasswordChecks(lambda _work: background)
        for name in ("a", "b"):
            checks.submit(name, lambda: None, lambda name=name: done.append(name))
        background.cancel()
        await asyncio.sleep(0)
        assert done == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("password", "is_closed", "events"),
    [
        ("secret", False, ["deferred", "sent", "admitted", "continued"]),
        ("wrong", False, ["deferred", "deferred", "continued"]),
        ("secret", True, ["deferred"]),
    ],
)
def test_gate_handles_a_message_after_the_check_of_its_password(
    tmp_path: Path, password: str, is_closed: bool, events: list[str]
) -> None:
    """The requests after it wait; a connection that was closed in between is not continued."""
    path = tmp_path / "users"
    hashed = scram.credential_of_password(scram.USERS_MECHANISM, "secret", bytes(16), 4096)
    path.write_text(scram.users_text({"ann": hashed}))
    security = ListenerSecurity(("PLAIN",), users_path=str(path))
    counts = LoginCounts()

    async def scenario() -> None:
        background = Background()
        users = PlainUsers(str(path), RealFileSystem())
        users.checks = PasswordChecks(background)
        counted = {"SASL": counts}
        logins = Logins(
            {"SASL": security}, scram_users({}), SeededRng(1), RealClock(), counts=counted
        )
        logins.plain_users = {"SASL": users}
        gate = Gate(
            cast(Any, None),
            security,
            AuthenticationLimits(100, 1000, 60.0),
            lambda: 0.0,
            counts,
            lambda *_: None,
            Attempts(AttemptLimits()),
        )
        line = Line(logins.begin("SASL", "PLAIN", is_raw=True))
        connection = cast(Connection, line)
        gate.frame(connection, memoryview(bytearray(f"\0ann\0{password}".encode())))
        assert line.events == ["deferred"]
        assert not is_known(connection)
        line.is_closed = is_closed
        await background.finish()
        assert line.events == events
        assert is_known(connection) is ("admitted" in events)

    asyncio.run(scenario())
    assert (counts.succeeded, counts.failed) == (
        int("admitted" in events),
        int(password == "wrong"),
    )
