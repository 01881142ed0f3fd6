"""Authentication of a connection with SASL (KIP-43, KIP-152): SaslHandshake, SaslAuthenticate."""

import secrets
from typing import Protocol, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.bootstrap import Address
from ottla.client.security.options import Credentials
from ottla.client.security.refusals import refused_login
from ottla.client.security.sasl import AuthenticationFailed, exchange
from ottla.wire import schema
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

M = TypeVar("M", bound=schema.Message)


class Connection(Protocol):
    """A connection that is not authenticated yet."""

    address: Address

    def call(self, request: schema.Message, response_type: type[M], *, timeout_s: float = ...) -> M:
        """Send a request and return its response."""
        ...


def authenticate(connection: Connection, credentials: Credentials, timeout_s: float) -> int:
    """Authenticate; return the lifetime of the session in milliseconds, 0 if it does not end.

    ApiError UNSUPPORTED_SASL_MECHANISM or SASL_AUTHENTICATION_FAILED.
    """
    mechanism = credentials.mechanism
    chosen = connection.call(
        SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, timeout_s=timeout_s
    )
    if chosen.error_code:
        offered = ", ".join(chosen.mechanisms)
        raise ApiError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"{connection.address} does not offer sasl.mechanism={mechanism}; it offers: {offered}.",
        )
    steps = exchange(credentials, secrets.token_urlsafe(24))
    message = next(steps)
    while True:
        response = connection.call(
            SaslAuthenticateRequest(auth_bytes=message),
            SaslAuthenticateResponse,
            timeout_s=timeout_s,
        )
        if response.error_code:
            raise refused_login(connection.address, response.error_message)
        try:
            message = steps.send(bytes(response.auth_bytes))
        except StopIteration:
            return int(response.session_lifetime_ms)
        except (AuthenticationFailed, ValueError) as error:
            raise refused_login(connection.address, str(error)) from error
