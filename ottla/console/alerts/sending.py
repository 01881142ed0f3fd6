"""Sends notifications: HTTP requests and mail, to addresses that `addresses.py` allows.

Redirects are not followed, responses are read up to a limit, and errors never contain the URL,
which is a secret.

Not done: proxies.
"""

import http.client
import smtplib
import socket
import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

from ottla.base.errors import OttlaError
from ottla.console.alerts.addresses import Network, resolve
from ottla.console.alerts.channels import (
    Channel,
    HttpRequest,
    MailSettings,
    Notification,
    Security,
    mail_of,
    refusal_of,
    request_of,
)

TIMEOUT_S = 10.0
_ANSWER_BYTES = 4096


class NotSent(OttlaError):
    """A notification could not be sent; the message says why."""


def send(
    channel: Channel, notification: Notification, now_ms: int, allowed: Sequence[Network]
) -> None:
    """Send a notification; NotSent or Forbidden if that fails. Blocks for some seconds at most."""
    try:
        if channel.mail is not None:
            _send_mail(channel.mail, notification, now_ms, allowed)
            return
        request = request_of(channel, notification, now_ms)
        status, body = _post(request, allowed)
    except (OSError, http.client.HTTPException, smtplib.SMTPException) as error:
        raise NotSent(f"{channel.destination} cannot be reached: {_reason(error)}") from None
    if refusal := refusal_of(channel.kind, status, body):
        raise NotSent(refusal)


def _post(request: HttpRequest, allowed: Sequence[Network]) -> tuple[int, bytes]:
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    address = resolve(host, port, allowed)
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    # The socket goes to the address that was checked: the name is not resolved again.
    plain = socket.create_connection((address, port), timeout=TIMEOUT_S)
    connection.sock = plain
    try:
        if is_secure:
            context = ssl.create_default_context()
            connection.sock = context.wrap_socket(plain, server_hostname=host)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        default = 443 if is_secure else 80
        name = f"[{host}]" if ":" in host else host
        header = {"host": name if port == default else f"{name}:{port}", "connection": "close"}
        connection.request("POST", target, request.body, {**request.headers, **header})
        response = connection.getresponse()
        return response.status, response.read(_ANSWER_BYTES)
    finally:
        connection.close()
        plain.close()


class _Server(smtplib.SMTP):
    """A mail server whose name has been resolved and checked."""

    def __init__(self, address: str, settings: MailSettings) -> None:
        self._address = address
        self._settings = settings
        super().__init__(settings.host, settings.port, timeout=TIMEOUT_S)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain = socket.create_connection((self._address, port), timeout=timeout)
        if self._settings.security is not Security.TLS:
            return plain
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _send_mail(
    settings: MailSettings, notification: Notification, now_ms: int, allowed: Sequence[Network]
) -> None:
    address = resolve(settings.host, settings.port, allowed)
    with _Server(address, settings) as server:
        if settings.security is Security.STARTTLS:
            server.starttls(context=ssl.create_default_context())
        if settings.user:
            server.login(settings.user, settings.password)
        server.send_message(mail_of(settings, notification, now_ms))


def _reason(error: Exception) -> str:
    """Return the reason of an error without what the other side has sent."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return "the mail server refuses the user or the password"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the mail server returns the code {error.smtp_code}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
