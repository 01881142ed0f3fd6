"""The user of SCRAM as which brokers log in to each other."""

from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.rng import SeededRng
from ottla.cluster.options.security.broker_login import BrokerLogin
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.znodes import ConfigChangeNode, ConfigNode
from ottla.security import scram
from ottla.server.authentication import broker_user
from ottla.server.authentication.identity import ClientLogin, is_broker
from ottla.server.authentication.logins import Logins
from ottla.server.handlers import sasl_handshake
from ottla.testing.sim.files import SimFileSystem
from tests.handlers.logs import NODE, OTHER, LogsBroker, scram_users

MECHANISM = "SCRAM-SHA-512"
LOGIN = BrokerLogin(MECHANISM, "broker", "secret")
PATH = "/config/users/broker"


async def stored(*logins: BrokerLogin) -> dict[str, str]:
    """Return the settings of the user after brokers with these logins have started."""
    tree = EmbeddedTree(SimFileSystem(), RealClock())
    session = tree.session()
    for seed, login in enumerate(logins):
        await broker_user.ensure(session, login, SeededRng(seed))
    settings = ConfigNode.decode(PATH, (await session.get(PATH))[0])
    notices = await session.children(ConfigChangeNode.PARENT)
    assert len(notices) == len(settings)
    await tree.close()
    return settings


async def test_first_broker_stores_the_credential() -> None:
    """The others find it; brokers cannot be reached by tools before they know each other."""
    first = await stored(LOGIN)
    assert first == await stored(LOGIN, LOGIN)
    both = await stored(LOGIN, BrokerLogin("SCRAM-SHA-256", "broker", "other"))
    assert both.keys() == {MECHANISM, "SCRAM-SHA-256"}
    assert both[MECHANISM] == first[MECHANISM]


async def test_another_password_stops_the_start() -> None:
    """The broker could not log in to the others; the error does not show the passwords."""
    with pytest.raises(ConfigError) as caught:
        await stored(LOGIN, BrokerLogin(MECHANISM, "broker", "other-password"))
    assert "the password of the brokers' user broker in scram-sha-512" in str(caught.value)
    assert "`ottla security user broker --mechanism SCRAM-SHA-512`" in str(caught.value)
    assert "other-password" not in str(caught.value)


class World:
    """A broker with the listeners INNER, for brokers, and OUTER, and its users."""

    def __init__(self, broker: LogsBroker, settings: dict[str, str]) -> None:
        self.broker = broker
        users = scram_users({"broker": settings, "ann": settings})
        security = ListenerSecurity(("PLAIN", MECHANISM), {"broker": "secret"})
        listeners = {"INNER": security, "OUTER": security}
        logins = broker.logins = Logins(listeners, users, SeededRng(1), RealClock())
        logins.broker, logins.for_brokers = LOGIN, {"INNER"}
        broker.secret, broker.brokers_prove = None, True  # type: ignore[assignment]

    def context(
        self, listener: str = "INNER", user: str = "broker", password: str = "secret"
    ) -> Any:
        """Return the context of a peer that has logged in with SCRAM."""
        context = self.broker.context(sasl_handshake, 1, listener)
        login = context.connection.identity = self.broker.logins.begin(
            listener, MECHANISM, is_raw=False
        )
        messages = scram.messages_of(scram.Login("sha512", user, password), "x", 4096)
        reply = login.step(next(messages))
        assert not is_broker(context.connection)
        with pytest.raises(StopIteration):
            messages.send(login.step(messages.send(reply)))
        return context


@pytest.fixture
async def world(broker: LogsBroker) -> World:
    """Return a world with the password `secret` for all users."""
    return World(broker, await stored(LOGIN))


async def test_user_of_the_brokers_is_a_broker(world: World) -> None:
    """It may be each registered broker but this one: the login does not say which, as in Kafka."""
    context = world.context()
    assert is_broker(context.connection)
    assert context.is_from_any_broker
    assert context.is_from_broker(OTHER)
    assert not context.is_from_broker(NODE)
    assert not context.is_from_broker(99)
    assert context.speaks_for(99)
    assert not context.speaks_for(-1)


async def test_other_peers_are_no_brokers(world: World) -> None:
    """Another user, another listener, no login, another mechanism, and a delegation token."""
    plain = world.context()
    plain.connection.identity = world.broker.logins.begin("INNER", "PLAIN", is_raw=False)
    plain.connection.identity.step(b"\0broker\0secret")
    assert plain.connection.identity.user == "broker"
    by_token = world.context()
    assert isinstance(by_token.connection.identity, ClientLogin)
    by_token.connection.identity.exchange.is_by_token = True
    stranger = world.context()
    stranger.connection.identity = None
    for context in (world.context(user="ann"), world.context("OUTER"), stranger, plain, by_token):
        assert not is_broker(context.connection)
        assert not context.is_from_any_broker
        assert not context.is_from_broker(OTHER)
        assert not context.speaks_for(OTHER)
