"""Users of SCRAM: found by name, and not to be distinguished from users who do not exist."""

import base64
import random
import time
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from ottla.base.clock import RealClock
from ottla.base.rng import SeededRng
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.security.exchanges import AuthenticationFailed
from ottla.security.scram import ScramCredential, ScramMechanism
from ottla.server.authentication.logins import Logins
from ottla.server.authentication.scram_users import ScramUsers
from ottla.testing.sim.files import SimFileSystem
from tests.handlers.logs import scram_users

SCRAM = "SCRAM-SHA-256"
MECHANISM = ScramMechanism.SCRAM_SHA_256
SECURITY = {"SASL": ListenerSecurity((SCRAM,))}
Settings = Mapping[str, Mapping[str, str]]


def stored(iterations: int = 4096, salt: bytes = b"\1" * 16) -> dict[str, str]:
    """Return the settings of a user with a credential."""
    return {SCRAM: ScramCredential(salt, b"k" * 32, b"s" * 32, iterations).text()}


class Shown(NamedTuple):
    """The values that a client receives before it proves anything."""

    salt: bytes
    iterations: int


def logins_of(users: ScramUsers, seed: int = 1) -> Logins:
    """Return the logins of a broker."""
    return Logins(SECURITY, users, SeededRng(seed), RealClock())


def shown(logins: Logins, user: str) -> Shown:
    """Return the values that a client receives for a user."""
    exchange = logins.begin("SASL", SCRAM, is_raw=False)
    reply = exchange.step(f"n,,n={user},r=x".encode()).decode()
    _, salt, iterations = reply.split(",")
    return Shown(base64.b64decode(salt.removeprefix("s=")), int(iterations.removeprefix("i=")))


async def test_unknown_user_is_the_same_after_a_restart_and_on_every_broker() -> None:
    """Otherwise two brokers, or a restart, would show that a user does not exist."""
    tree = EmbeddedTree(SimFileSystem(), RealClock())
    replies = []
    for seed in (1, 2):
        users = ScramUsers()
        await users.start(tree.session(), SeededRng(seed))
        users.settings_changed("users", "ann", stored())
        replies.append([shown(logins_of(users, seed), user) for user in ("eve", "bob", "ann")])
    assert replies[0] == replies[1]
    assert len({reply.salt for reply in replies[0]}) == 3
    await tree.close()


@pytest.mark.parametrize(("iterations", "size"), [(8192, 16), (4096, 64), (16_384, 20)])
def test_unknown_user_looks_like_the_users(iterations: int, size: int) -> None:
    """Iterations and salts are as long as the users', not as the minimum."""
    settings = {f"user-{number}": stored(iterations, b"\1" * size) for number in range(3)}
    logins = logins_of(scram_users(settings))
    for user in (*settings, "eve", "bob"):
        reply = shown(logins, user)
        assert (reply.iterations, len(reply.salt)) == (iterations, size)


def test_users_are_current() -> None:
    """A credential that is set, replaced and removed counts at once, and so does its form."""
    users = scram_users({})
    logins = logins_of(users)
    assert shown(logins, "eve").iterations == 4096
    users.settings_changed("users", "ann", stored(8192))
    assert (shown(logins, "ann").salt, shown(logins, "eve").iterations) == (b"\1" * 16, 8192)
    users.settings_changed("users", "ann", stored(5000, b"\2" * 16))
    assert (shown(logins, "ann").salt, shown(logins, "eve").iterations) == (b"\2" * 16, 5000)
    users.settings_changed("users", "ann", {"producer_byte_rate": "7"})
    assert shown(logins, "ann").iterations == shown(logins, "eve").iterations == 4096
    assert users.find(MECHANISM, "ann").user == ""


def test_name_is_found_as_it_is_written() -> None:
    """Names are escaped in the tree; the default user and clients of a user are no users."""
    users = scram_users({"a b/clients/c": stored(5000)})
    users.settings_changed("users", "<default>", stored(6000))
    users.settings_changed("users", "ann/clients/x", stored(7000))
    users.settings_changed("clients", "bob", stored(8000))
    assert users.find(MECHANISM, "a b/clients/c").user == "a b/clients/c"
    for name in ("<default>", "ann", "ann/clients/x", "bob", "a%20b%2Fclients%2Fc"):
        login = users.find(MECHANISM, name)
        assert (login.user, login.credential.iterations) == ("", 5000)


@pytest.mark.parametrize("text", ["damaged", stored(4095)[SCRAM], stored(1)[SCRAM]])
def test_unusable_credential_is_that_of_an_unknown_user(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another program has written it; the log has the user and no key."""
    users = scram_users({"ann": {SCRAM: text}, "bob": stored(8192)})
    login = users.find(MECHANISM, "ann")
    assert (login.user, login.credential.iterations) == ("", 8192)
    assert f"user=ann mechanism={SCRAM}" in caplog.text
    assert "stored_key=" not in caplog.text


def refusal_ns(logins: Logins, user: str) -> int:
    """Return the time of the responses to a client with a wrong password."""
    proof = base64.b64encode(bytes(32)).decode()
    first = f"n,,n={user},r=x".encode()
    begun_ns = time.perf_counter_ns()
    exchange = logins.begin("SASL", SCRAM, is_raw=False)
    nonce = exchange.step(first).split(b",")[0].decode()
    try:
        exchange.step(f"c=biws,{nonce},p={proof}".encode())
    except AuthenticationFailed:
        return time.perf_counter_ns() - begun_ns
    raise AssertionError("the password was accepted")


def test_refusal_of_an_unknown_user_takes_as_long_as_that_of_a_wrong_password() -> None:
    """A rank test: neither of the two takes more than a tenth longer in half of the cases.

    Ranks of pairs that follow each other do not depend on how busy the machine is. A tenth is a
    microsecond, which no network shows.
    """
    settings = {f"user-{number:04}": stored() for number in range(500)}
    logins, order = logins_of(scram_users(settings)), random.Random(1)
    known, unknown = sorted(settings), [f"none-{number:04}" for number in range(500)]
    pairs = longer_if_known = longer_if_unknown = 0
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline and pairs < 5000:
        users = [(known[pairs % 500], True), (unknown[pairs % 500], False)]
        order.shuffle(users)
        times_ns = {is_known: refusal_ns(logins, user) for user, is_known in users}
        longer_if_known += times_ns[True] > 1.1 * times_ns[False]
        longer_if_unknown += times_ns[False] > 1.1 * times_ns[True]
        pairs += 1
    assert pairs > 200
    assert max(longer_if_known, longer_if_unknown) < pairs / 2, (
        f"of {pairs} pairs, the known user took longer in {longer_if_known}, the unknown one in "
        f"{longer_if_unknown}"
    )
