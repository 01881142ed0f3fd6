"""Sends notifications: HTTP requests and mail, to addresses that `addresses.py` allows.

Redirects are not followed, responses are read up to a limit, and errors never contain the URL,
which is a secret.

Not done: proxies.
"""

import smtplib
import socket
import ssl
from collections.abc import Sequence
from urllib.parse import urlsplit

from ottla.base.errors import OttlaError
from ottla.console.alerts.addresses import Network, resolve
from ottla.console.alerts.channels import (
    Channel,
    MailSettings,
    Notification,
    Security,
    mail_of,
    refusal_of,
    request_of,
)
from ottla.net.web_requests import WebRequest, WebResponse, send_directly

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
        response = _post(request, allowed)
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(f"{channel.destination} cannot be reached: {_reason(error)}") from None
    if refusal := refusal_of(channel.kind, response.status, response.body):
        raise NotSent(refusal)


def _post(request: WebRequest, allowed: Sequence[Network]) -> WebResponse:
    parts = urlsplit(request.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    # The socket goes to the address that was checked: the name is not resolved again.
    address = resolve(parts.hostname or "", port, allowed)
    return send_directly(
        request,
        timeout_s=TIMEOUT_S,
        bytes_max=_ANSWER_BYTES,
        is_cut=True,
        address=address,
    )


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
    return type(error.__cause__ or error).__name__
