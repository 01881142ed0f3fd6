"""A broker that issues delegation tokens, and its clients."""

from types import ModuleType
from typing import Any, cast

from ottla.base.clock import RealClock
from ottla.base.errors import ErrorCode
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.net.connection import Connection
from ottla.security.sessions import Session
from ottla.security.tokens import Lifetimes
from ottla.server.authentication.identity import CertificateUser, ClientLogin
from ottla.server.authentication.tokens import DelegationTokens, Settings
from ottla.testing.sim.files import SimFileSystem
from ottla.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from tests.handlers.logs import LogsBroker, through_codec

HOUR_MS = 3_600_000
SETTINGS = Settings("secret", Lifetimes(max_ms=2 * HOUR_MS, expiry_ms=HOUR_MS), 1000.0)
REFUSED = [
    (None, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    (CertificateUser("ANONYMOUS"), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
]
"""Identities that may not request tokens."""


async def issue_tokens(broker: LogsBroker) -> DelegationTokens:
    """Let a broker issue tokens, which expire after an hour."""
    tokens = DelegationTokens(SETTINGS, broker.clock, broker.rng, broker.tasks)
    await tokens.start(EmbeddedTree(SimFileSystem(), RealClock()).session())
    broker.logins.tokens = tokens
    return tokens


def login(broker: LogsBroker, user: str, *, is_by_token: bool = False) -> ClientLogin:
    """Return the identity of a client that has logged in."""
    done = broker.logins.begin("SASL", "PLAIN", is_raw=False)
    done.session = Session(user, "PLAIN")
    done.exchange.is_by_token = is_by_token
    return done


async def send(
    broker: LogsBroker, handler: ModuleType, request: Any, identity: object, version: int
) -> Any:
    """Send a request from a client; return the response through the codec of its version."""
    context = broker.context(handler, version, listener="SASL")
    cast(Connection, context.connection).identity = identity
    response = handler.handle(context, through_codec(request, version))
    if hasattr(response, "__await__"):
        response = await response
    return through_codec(response, version)


def creation(*renewers: str, lifetime_ms: int = -1, **fields: Any) -> CreateDelegationTokenRequest:
    """Return a request for a token that these users may renew."""
    rows = [CreatableRenewers(principal_type="User", principal_name=name) for name in renewers]
    return CreateDelegationTokenRequest(renewers=rows, max_lifetime_ms=lifetime_ms, **fields)
