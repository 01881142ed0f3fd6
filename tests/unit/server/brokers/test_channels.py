"""Channels to other brokers on which this broker logs in with SCRAM."""

import asyncio
from typing import Any, cast

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.rng import SeededRng
from ottla.cluster.options.security.broker_login import BrokerLogin
from ottla.net.port import Net
from ottla.security.exchanges import AuthenticationFailed, ScramExchange, ScramLogin
from ottla.security.scram import ScramMechanism, credential_of_password
from ottla.server.brokers.channels import Channels
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

SHA_512 = ScramMechanism.SCRAM_SHA_512
FAILED = int(ErrorCode.SASL_AUTHENTICATION_FAILED)


class Peer:
    """The connection to a peer that knows a password."""

    def __init__(self, password: str, iterations: int = 4096) -> None:
        self.credential = credential_of_password(SHA_512, password, b"salt" * 4, iterations)
        self.exchange = ScramExchange(
            SHA_512, lambda user: ScramLogin(user, self.credential), nonce="peer"
        )
        self.mechanisms = [SHA_512.mechanism_name]
        self.claims_to_know = False
        self.is_lost = False

    def close(self) -> None:
        """Note that the connection is not used."""
        self.is_lost = True

    async def send(self, request: Any, version: int) -> Any:
        """Return the response to a request."""
        await asyncio.sleep(0)
        if isinstance(request, SaslHandshakeRequest):
            is_known = request.mechanism in self.mechanisms
            code = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return SaslHandshakeResponse(error_code=int(code))
        try:
            reply = self.exchange.step(bytes(request.auth_bytes))
        except AuthenticationFailed:
            if self.claims_to_know:
                return SaslAuthenticateResponse(auth_bytes=b"v=c2VjcmV0")
            return SaslAuthenticateResponse(error_code=FAILED)
        return SaslAuthenticateResponse(auth_bytes=reply)


class Network:
    """A network in which every address belongs to one peer."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def connect(self, *_: object) -> tuple[object, Peer]:
        return None, self._peer


async def log_in(peer: Peer) -> None:
    """Log in to a peer."""
    login = BrokerLogin(SHA_512.mechanism_name, "broker", "secret")
    channels = Channels(cast(Net, Network(peer)), SeededRng(1), 1, None, login=login)
    assert not channels.prove_identity
    try:
        await channels.open("peer", 1, purpose="test").connect()
    except OSError:
        assert peer.is_lost
        raise


async def test_broker_logs_in_as_its_user() -> None:
    """The peer knows the credential, not the password."""
    peer = Peer("secret")
    await log_in(peer)
    assert peer.exchange.user == "broker"


async def test_peer_that_refuses_the_login_is_an_error() -> None:
    """The caller tries again later; the reason is in its log."""
    with pytest.raises(ConnectionAbortedError, match="SASL_AUTHENTICATION_FAILED"):
        await log_in(Peer("other"))
    peer = Peer("secret")
    peer.mechanisms = []
    with pytest.raises(ConnectionAbortedError, match="UNSUPPORTED_SASL_MECHANISM"):
        await log_in(peer)


async def test_peer_that_does_not_know_the_password_is_no_broker() -> None:
    """It could be anyone who has taken the address; too many iterations would stop the broker."""
    peer = Peer("other")
    peer.claims_to_know = True
    with pytest.raises(ConnectionAbortedError, match="the server does not know the password"):
        await log_in(peer)
    with pytest.raises(ConnectionAbortedError, match="the server's first message is wrong"):
        await log_in(Peer("secret", iterations=16_385))
