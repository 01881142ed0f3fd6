"""Channels to other brokers, on which this broker has introduced itself.

Each side proves that it belongs to the cluster before the first request (security.broker_proof).

Not done: an Apache Kafka broker in the same cluster does not know this exchange; with
inter.broker.authentication=none neither side proves anything.
"""

from ottla.base.errors import ErrorCode
from ottla.base.rng import Rng
from ottla.net.port import Net
from ottla.net.requests import RequestChannel, RequestConnection, TlsSource
from ottla.security.broker_proof import MECHANISM, NUMBER_BYTES, ProofError, ProofOfBroker, Secret
from ottla.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_HANDSHAKE_VERSION = 1
_AUTHENTICATE_VERSION = 2


class Channels:
    """Opens channels from this broker; `secret` is None if brokers do not prove their identity.

    If `tls` returns a context, they are encrypted.
    """

    def __init__(
        self,
        net: Net,
        rng: Rng,
        broker_id: int,
        secret: Secret | None,
        tls: TlsSource = lambda: None,
    ) -> None:
        self._tls = tls
        self._net = net
        self._rng = rng
        self._broker_id = broker_id
        self._secret = secret

    @property
    def prove_identity(self) -> bool:
        """True if brokers prove to each other that they belong to this cluster."""
        return self._secret is not None

    def open(self, host: str, port: int, *, purpose: str) -> RequestChannel:
        """Return a channel that connects on first use; `purpose` names it in the peer's logs."""
        introduce = None if self._secret is None else self._introduce
        client_id = f"broker-{self._broker_id}-{purpose}"
        return RequestChannel(
            self._net, host, port, client_id=client_id, introduce=introduce, tls=self._tls
        )

    async def _introduce(self, connection: RequestConnection) -> None:
        """Run the exchange on a new connection; raises ConnectionError if either side refuses."""
        assert self._secret is not None
        handshake = await connection.send(
            SaslHandshakeRequest(mechanism=MECHANISM), _HANDSHAKE_VERSION
        )
        assert isinstance(handshake, SaslHandshakeResponse)
        _check(handshake.error_code)
        number = self._rng.random_bytes(NUMBER_BYTES)
        keys, binding = self._secret.valid_keys(), connection.channel_binding
        proof = ProofOfBroker(keys, self._broker_id, number, binding)
        reply = await _step(connection, proof.first())
        try:
            second_message = proof.second(reply)
        except ProofError as error:
            raise ConnectionAbortedError(str(error)) from error
        await _step(connection, second_message)


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
