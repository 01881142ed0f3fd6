"""Channels to other brokers, on which this broker has introduced itself.

Each side proves that it belongs to the cluster before the first request: by the cluster's secret
(security.broker_proof), or by the password of the brokers' user (SCRAM), as brokers of Apache Kafka
do.

Not done: an Apache Kafka broker in the same cluster does not know the first of them; with
inter.broker.authentication=none neither side proves anything.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.base.loading import deferred_module
from ottla.base.rng import Rng
from ottla.net.port import Net
from ottla.net.requests import RequestChannel, RequestConnection, TlsSource
from ottla.security.broker_proof import MECHANISM, NUMBER_BYTES, ProofError, ProofOfBroker, Secret
from ottla.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from ottla.cluster.options.security.broker_login import BrokerLogin
    from ottla.security import scram
else:
    # Few clusters have users for their brokers.
    scram = deferred_module("ottla.security.scram")

_HANDSHAKE_VERSION = 1
_AUTHENTICATE_VERSION = 2


class Channels:
    """Opens channels from this broker, on which it proves its identity by `secret` or `login`.

    If both are None, brokers prove nothing. If `tls` returns a context, channels are encrypted.
    """

    def __init__(
        self,
        net: Net,
        rng: Rng,
        broker_id: int,
        secret: Secret | None,
        tls: TlsSource = lambda: None,
        login: "BrokerLogin | None" = None,
    ) -> None:
        self._tls = tls
        self._login = login
        self._net = net
        self._rng = rng
        self._broker_id = broker_id
        self._secret = secret

    @property
    def prove_identity(self) -> bool:
        """True if brokers prove by the secret of the cluster which one they are."""
        return self._secret is not None

    def open(self, host: str, port: int, *, purpose: str) -> RequestChannel:
        """Return a channel that connects on first use; `purpose` names it in the peer's logs."""
        introduce = None
        if self._login is not None:
            introduce = self._log_in
        elif self._secret is not None:
            introduce = self._introduce
        client_id = f"broker-{self._broker_id}-{purpose}"
        return RequestChannel(
            self._net, host, port, client_id=client_id, introduce=introduce, tls=self._tls
        )

    async def _introduce(self, connection: RequestConnection) -> None:
        """Run the exchange on a new connection; raises ConnectionError if either side refuses."""
        assert self._secret is not None
        await _begin(connection, MECHANISM)
        number = self._rng.random_bytes(NUMBER_BYTES)
        keys, binding = self._secret.valid_keys(), connection.channel_binding
        proof = ProofOfBroker(keys, self._broker_id, number, binding)
        reply = await _step(connection, proof.first())
        try:
            second_message = proof.second(reply)
        except ProofError as error:
            raise ConnectionAbortedError(str(error)) from error
        await _step(connection, second_message)

    async def _log_in(self, connection: RequestConnection) -> None:
        """Log in with SCRAM; raises ConnectionError if either side refuses."""
        login = self._login
        assert login is not None
        await _begin(connection, login.mechanism)
        digest = scram.ScramMechanism.of_name(login.mechanism).digest
        own = scram.Login(digest, login.user, login.password)
        nonce = self._rng.random_bytes(NUMBER_BYTES).hex()
        messages = scram.messages_of(own, nonce, scram.ITERATIONS_MAX)
        message = next(messages)
        while True:
            reply = await _step(connection, message)
            try:
                message = messages.send(reply)
            except StopIteration:
                return
            except (scram.ServerNotProven, ValueError) as error:
                raise ConnectionAbortedError(f"the peer is not a broker: {error}") from error


async def _begin(connection: RequestConnection, mechanism: str) -> None:
    handshake = await connection.send(SaslHandshakeRequest(mechanism=mechanism), _HANDSHAKE_VERSION)
    assert isinstance(handshake, SaslHandshakeResponse)
    _check(handshake.error_code)


async def _step(connection: RequestConnection, message: bytes) -> bytes:
    response = await connection.send(
        SaslAuthenticateRequest(auth_bytes=message), _AUTHENTICATE_VERSION
    )
    assert isinstance(response, SaslAuthenticateResponse)
    _check(response.error_code)
    return bytes(response.auth_bytes)


def _check(error_code: int) -> None:
    if error_code:
        raise ConnectionAbortedError(
            f"the peer does not accept this broker: {ErrorCode(error_code).name}"
        )
