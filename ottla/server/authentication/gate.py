"""The gate of a listener: it passes a connection to the dispatcher once its client is known.

Clients before Kafka 1.0 send the messages of the exchange as they are (version 0 of SaslHandshake).
"""

import asyncio
from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.net.connection import Connection, FrameHandler
from ottla.net.tls import subject_of
from ottla.security.exchanges import AuthenticationFailed
from ottla.server.authentication.identity import CertificateUser, ClientLogin, is_known
from ottla.server.quotas.entities import ANONYMOUS
from ottla.wire.api_keys import ApiKey

_BEFORE = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_KEY_BYTES = 2


class Limits(NamedTuple):
    """Of connections: the largest request before and after the client is known, and the seconds
    before a failure is answered.
    """

    bytes_before: int
    bytes_after: int
    failure_seconds: float


class Gate:
    """The FrameHandler of connections whose client is not known yet."""

    def __init__(
        self, dispatcher: FrameHandler, security: ListenerSecurity, limits: Limits
    ) -> None:
        self._dispatcher = dispatcher
        self._has_sasl = bool(security.mechanisms)
        self._limits = limits

    def frame(self, connection: Connection, frame: memoryview) -> None:
        """Handle a frame of an exchange, or close the connection (ProtocolError)."""
        if is_known(connection):
            # It came in the same read as the last frame of the exchange.
            self._dispatcher.frame(connection, frame)
            return
        if not self._has_sasl:
            subject = subject_of(connection.certificate)
            connection.identity = CertificateUser(subject or ANONYMOUS)
            self._admit(connection)
            self._dispatcher.frame(connection, frame)
            return
        if len(frame) > self._limits.bytes_before:
            raise ProtocolError(f"a request of {len(frame)} bytes before authentication")
        login = connection.identity
        if isinstance(login, ClientLogin) and login.is_raw:
            self._step(connection, login, bytes(frame))
        else:
            self._check(frame)
            self._dispatcher.frame(connection, frame)
        if is_known(connection):
            self._admit(connection)

    def _admit(self, connection: Connection) -> None:
        connection.pass_to(self._dispatcher, self._limits.bytes_after)

    def _check(self, frame: memoryview) -> None:
        key = int.from_bytes(frame[:_KEY_BYTES], "big")
        if key not in _BEFORE:
            raise ProtocolError(f"a request with key {key} before authentication")

    def _step(self, connection: Connection, login: ClientLogin, message: bytes) -> None:
        try:
            reply = login.step(message)
        except AuthenticationFailed as error:
            # Kafka closes the connection, too: these clients expect no error code.
            reason = str(error)
            connection.defer()
            loop = asyncio.get_running_loop()
            loop.call_later(self._limits.failure_seconds, connection.close, reason)
            return
        connection.send((reply,))
