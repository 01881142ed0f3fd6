"""The gate of a listener: it passes a connection to the dispatcher once its client is known.

A connection whose session ends stays at the gate, which closes it if a request arrives after that
time (KIP-368). Clients before Kafka 1.0 send the messages of the exchange as they are (version 0 of
SaslHandshake).

After several failed logins a password is checked later, and the connection is muted until then. The
time comes before the check, so that the response to a right password is no faster than to a wrong
one.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.errors import ProtocolError
from ottla.base.loading import deferred_module
from ottla.cluster.options.security_options import ListenerSecurity
from ottla.net.admission.attempts import Attempts
from ottla.net.admission.origins import origin_of
from ottla.net.connection import Connection, FrameHandler, Reply
from ottla.security.exchanges import OAUTHBEARER, PLAIN, AuthenticationFailed
from ottla.server.authentication.claims import claimed_user
from ottla.server.authentication.identity import (
    CertificateUser,
    ClientLogin,
    FailedLogin,
    LoginCounts,
    is_known,
    session_of,
)
from ottla.server.quotas.entities import ANONYMOUS
from ottla.wire import headers, schema
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest

if TYPE_CHECKING:
    from ottla.security import certificates, principal_rules
else:
    # Few listeners have certificates of clients.
    certificates = deferred_module("ottla.security.certificates")
    principal_rules = deferred_module("ottla.security.principal_rules")

_BEFORE = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_IN_A_RENEWAL = frozenset({ApiKey.SASL_AUTHENTICATE})
_KEY_BYTES = 2
_TOO_MANY = "Authentication failed: too many failed logins, try again later"


class AuthenticationLimits(NamedTuple):
    """The largest request before and after the client is known, and the seconds before the
    response to a failure.
    """

    bytes_before: int
    bytes_after: int
    failure_seconds: float


class Gate:
    """The FrameHandler of connections whose client is not known yet, or not for ever.

    `now` returns the time of the monotonic clock in seconds. `report` is called with a login that
    has failed at the gate.
    """

    def __init__(
        self,
        dispatcher: FrameHandler,
        security: ListenerSecurity,
        limits: AuthenticationLimits,
        now: Callable[[], float],
        counts: LoginCounts,
        report: Callable[[Connection, FailedLogin], None],
        attempts: Attempts | None = None,
    ) -> None:
        self._counts = counts
        self._report = report
        self._attempts = attempts
        self._dispatcher = dispatcher
        self._now = now
        self._has_sasl = bool(security.mechanisms)
        self._names = security.names
        self._limits = limits

    def frame(self, connection: Connection, frame: memoryview) -> None:
        """Handle a frame of an exchange, or close the connection (ProtocolError)."""
        if is_known(connection):
            # Its session ends, or it came in the same read as the last frame of the exchange.
            self._check_session(connection, frame)
            self._dispatcher.frame(connection, frame)
            return
        if not self._has_sasl:
            connection.identity = CertificateUser(self._user(connection))
            self._admit(connection)
            self._dispatcher.frame(connection, frame)
            return
        if len(frame) > self._limits.bytes_before:
            raise ProtocolError(f"a request of {len(frame)} bytes before authentication")
        login = connection.identity
        if isinstance(login, ClientLogin):
            self._continue(connection, login, frame)
        else:
            self._check(frame, _BEFORE)
            self._dispatcher.frame(connection, frame)
        if is_known(connection):
            self._admit(connection)

    def _continue(self, connection: Connection, login: ClientLogin, frame: memoryview) -> None:
        """Handle a message of a client's exchange, perhaps later."""
        is_step = login.is_raw
        if not is_step:
            self._check(frame, _BEFORE if login.renewal is None else _IN_A_RENEWAL)
            is_step = _key(frame) == ApiKey.SASL_AUTHENTICATE
        attempts = self._attempts
        is_paced = is_step and attempts is not None and login.mechanism != OAUTHBEARER
        if is_paced and not login.has_turn and not self._has_turn(connection, login, frame):
            return
        if is_step and login.checks is not None and self._is_slow(connection, login, frame):
            return
        if login.is_raw:
            self._step(connection, login, bytes(frame))
        else:
            self._dispatcher.frame(connection, frame)
        if login.claimed is not None and login.session is not None and attempts is not None:
            origin = origin_of(connection.peer_address[0])
            attempts.succeeded(origin, login.claimed, self._now())

    def _has_turn(self, connection: Connection, login: ClientLogin, frame: memoryview) -> bool:
        """Return True if a message may be handled now; False if it is handled later.

        The first message of SCRAM has no proof of the password yet.
        """
        if login.claimed is None:
            message = bytes(frame) if login.is_raw else _message_of(frame)
            login.claimed = claimed_user(login.mechanism, message)
            if login.mechanism != PLAIN:
                return True
        assert self._attempts is not None
        origin = origin_of(connection.peer_address[0])
        wait = self._attempts.ask(origin, login.claimed, self._now())
        login.has_turn = True
        if wait is None:
            self._counts.refused += 1
            login.refusal = _TOO_MANY
        if not wait:
            return True
        self._counts.delayed += 1
        loop = asyncio.get_running_loop()
        loop.call_later(wait, self._come_back, connection, bytes(frame))
        connection.mute(wait)
        return False

    def _come_back(self, connection: Connection, frame: bytes) -> None:
        """Handle a frame whose turn has come."""
        if connection.is_closed:
            return
        try:
            self.frame(connection, memoryview(bytearray(frame)))
        except ProtocolError as error:
            connection.close(str(error))

    def _is_slow(self, connection: Connection, login: ClientLogin, frame: memoryview) -> bool:
        """Return True if a message is handled later, because another thread begins its step."""
        work = login.slow_part(bytes(frame) if login.is_raw else _message_of(frame))
        if work is None or login.checks is None:
            return False
        # The requests after this one wait.
        waiting = partial(self._checked, connection, bytes(frame), connection.defer())
        login.checks.submit(origin_of(connection.peer_address[0]), work, waiting)
        return True

    def _checked(self, connection: Connection, frame: bytes, turn: Reply) -> None:
        """Handle a message whose slow part is done, and then the requests after it."""
        self._come_back(connection, frame)
        if not connection.is_closed:
            turn.send_nothing()

    def _user(self, connection: Connection) -> str:
        """Return the user of a certificate; ProtocolError if it has no user, as in Kafka."""
        certificate = connection.certificate
        try:
            subject = "" if certificate is None else certificates.subject_of(certificate)
        except ValueError as error:
            raise self._refusal(
                connection, f"a certificate that cannot be read: {error}"
            ) from error
        if not subject:
            return ANONYMOUS
        user = subject if self._names is None else principal_rules.name_of(self._names, subject)
        if not user:
            reason = f"no rule of ssl.principal.mapping.rules returns a user for {subject!r}"
            raise self._refusal(connection, reason, subject)
        return user

    def _refusal(self, connection: Connection, reason: str, subject: str = "") -> ProtocolError:
        self._report(connection, FailedLogin("certificate", subject, reason))
        return ProtocolError(reason)

    def _admit(self, connection: Connection) -> None:
        session = session_of(connection)
        ends = session is not None and session.ends_at is not None
        connection.pass_to(self if ends else self._dispatcher, self._limits.bytes_after)

    def _check_session(self, connection: Connection, frame: memoryview) -> None:
        session = session_of(connection)
        if session is None or not session.has_ended(now := self._now()):
            return
        if _key(frame) != ApiKey.SASL_HANDSHAKE or not session.may_be_renewed(now):
            self._counts.expired += 1
            raise ProtocolError(f"the session of user {session.user} has ended")

    def _check(self, frame: memoryview, allowed: frozenset[ApiKey]) -> None:
        key = _key(frame)
        if key not in allowed:
            raise ProtocolError(f"a request with key {key} before authentication")

    def _step(self, connection: Connection, login: ClientLogin, message: bytes) -> None:
        try:
            reply = login.step(message)
        except AuthenticationFailed as error:
            # Kafka closes the connection, too: these clients expect no error code.
            reason = str(error)
            if not login.is_reported:
                self._report(connection, login.failure(error))
            connection.defer()
            loop = asyncio.get_running_loop()
            loop.call_later(self._limits.failure_seconds, connection.close, reason)
            return
        if login.unreported is not None:
            self._report(connection, login.unreported)
            login.unreported = None
        connection.send((reply,))


def _message_of(frame: memoryview) -> bytes:
    """Return the message of a SaslAuthenticate request; raises ProtocolError."""
    version = int.from_bytes(frame[_KEY_BYTES : 2 * _KEY_BYTES], "big")
    position = headers.decode_request_header(frame).body_position
    request, _ = schema.decode(SaslAuthenticateRequest, version, frame, position)
    return bytes(request.auth_bytes)


def _key(frame: memoryview) -> int:
    return int.from_bytes(frame[:_KEY_BYTES], "big")
