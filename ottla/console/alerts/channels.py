"""Channels: where notifications go, and the request that each service documents. Pure.

* Slack, incoming webhooks; three characters are escaped, and a refusal has another status than 200:
  https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
  https://api.slack.com/docs/message-formatting
* DingTalk, custom robots; timestamp in ms and signature are parameters of the address:
  https://open.dingtalk.com/document/group/custom-robot-access
* WeCom, group robots; the text has 2048 bytes at most:
  https://developer.work.weixin.qq.com/document/path/91770
* Feishu, custom bots; timestamp in seconds and signature are in the body, which has 20 KB at most:
  https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot
* Mail: RFC 5322 (Date is required), RFC 3207 (STARTTLS), RFC 3834 (no automatic replies).
* Webhook: our own format, described in docs/console.md.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from enum import Enum
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from ottla.base.errors import ConfigError
from ottla.net.web_requests import WebRequest

NAME_LENGTH = 80
NO_SECRET = "-"  # noqa: S105 - no secret
_URL_LENGTH = 2000
_WECOM_BYTES = 2048
# Escaped as JSON or for Slack it stays below 20 KB.
_TEXT_BYTES = 9000
_SIGNATURE_HEADER = "x-ottla-signature"


class ChannelKind(Enum):
    """A service."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    DINGTALK = "dingtalk"
    WECOM = "wecom"
    FEISHU = "feishu"
    MAIL = "mail"


class Security(Enum):
    """The encryption of the connection to a mail server."""

    NONE = "none"
    STARTTLS = "starttls"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class MailSettings:
    """A mail server and the addresses; `user` is empty if the server needs no login."""

    host: str
    port: int = 25
    security: Security = Security.STARTTLS
    user: str = ""
    password: str = field(default="", repr=False)
    sender: str = ""
    recipients: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel; `url` and `secret` are secrets, and `mail` is only for mail.

    `secret` signs the requests of webhooks, DingTalk and Feishu; empty: they are not signed.
    """

    name: str
    kind: ChannelKind
    url: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    mail: MailSettings | None = None

    def check(self) -> None:
        """Raise ConfigError for values with which nothing can be sent."""
        if not self.name.strip() or len(self.name) > NAME_LENGTH:
            raise ConfigError(f"the name of a channel has 1 to {NAME_LENGTH} characters")
        if self.kind is ChannelKind.MAIL:
            _check_mail(self.mail)
        else:
            check_url(self.url)
        if self.secret and self.kind in (ChannelKind.SLACK, ChannelKind.WECOM):
            raise ConfigError(
                f"a channel of the kind {self.kind.value} has no secret: its URL is one"
            )

    def completed(self, before: "Channel") -> "Channel":
        """Return the channel with the secrets of the one before, unless it has its own.

        A password is kept only with the same mail server and user, since an edit could otherwise
        send it to another server. A URL or secret is kept only with the same kind. The secret "-"
        removes the secret.
        """
        secret = "" if self.secret == NO_SECRET else self.secret
        if self.kind is not before.kind:
            return replace(self, secret=secret)
        if not self.secret:
            secret = before.secret
        mail = self.mail
        if mail is not None and before.mail is not None and not mail.password:
            if mail.user and _account(mail) == _account(before.mail):
                mail = replace(mail, password=before.mail.password)
            elif mail.user and before.mail.password:
                raise ConfigError(
                    "enter the password again: the server, its encryption or the user changes"
                )
        return replace(self, url=self.url or before.url, secret=secret, mail=mail)

    @property
    def destination(self) -> str:
        """The host, and the recipients of mail: what may be shown of a channel."""
        if self.mail is not None:
            return f"{', '.join(self.mail.recipients)} ({self.mail.host}:{self.mail.port})"
        return urlsplit(self.url).hostname or ""


def _account(mail: MailSettings) -> tuple[str, int, Security, str]:
    return mail.host, mail.port, mail.security, mail.user


class Notification(NamedTuple):
    """The content of a message; `labels` are facts for programs."""

    title: str
    text: str
    labels: Mapping[str, str]


def check_url(url: str) -> None:
    """Raise ConfigError unless a text is an http or https URL with a host and without a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("the URL is malformed") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError("the URL must begin with https:// or http:// and have a host")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("the URL must not have a user or a password")
    if len(url) > _URL_LENGTH or any(sign <= " " or sign > "~" for sign in url):
        raise ConfigError(f"the URL may have {_URL_LENGTH} printable ASCII characters")


def request_of(channel: Channel, notification: Notification, now_ms: int) -> WebRequest:
    """Return the request that carries a notification, signed if the channel has a secret."""
    headers = {"content-type": "application/json; charset=utf-8"}
    text = _cut(f"{notification.title}\n{notification.text}", _TEXT_BYTES)
    match channel.kind:
        case ChannelKind.SLACK:
            return _json(channel.url, headers, {"text": _slack_text(text)})
        case ChannelKind.DINGTALK:
            return _json(
                _dingtalk_url(channel, now_ms),
                headers,
                {"msgtype": "text", "text": {"content": text}},
            )
        case ChannelKind.WECOM:
            content = _cut(text, _WECOM_BYTES)
            return _json(channel.url, headers, {"msgtype": "text", "text": {"content": content}})
        case ChannelKind.FEISHU:
            # The name of a group must not mention everyone.
            body = {"msg_type": "text", "content": {"text": text.replace("<at", "< at")}}
            return _json(channel.url, headers, _feishu_signature(channel, now_ms) | body)
        case _:
            return _webhook(channel, notification, headers, now_ms)


def mail_of(settings: MailSettings, notification: Notification, now_ms: int) -> EmailMessage:
    """Return a mail; line breaks in the title become spaces, so that it adds no header."""
    message = EmailMessage()
    content = f"{settings}{notification.title}{notification.text}"
    number = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]
    message["Date"] = format_datetime(datetime.fromtimestamp(now_ms / 1000, UTC))
    message["Message-ID"] = f"<{now_ms}.{number}@{settings.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message["Subject"] = " ".join(notification.title.split())
    message["From"] = settings.sender
    message["To"] = ", ".join(settings.recipients)
    message.set_content(notification.text)
    return message


def refusal_of(kind: ChannelKind, status: int, body: bytes) -> str:
    """Return why a service has refused a notification, or an empty text if it was accepted.

    DingTalk, WeCom and Feishu report errors with the status 200 and a code in the body.
    """
    if not 200 <= status < 300:
        return f"the server returns the status {status}"
    if kind not in (ChannelKind.DINGTALK, ChannelKind.WECOM, ChannelKind.FEISHU):
        return ""
    try:
        document = json.loads(body)
        code = document.get("errcode", document.get("code", document.get("StatusCode", 0)))
    except (ValueError, AttributeError, RecursionError):
        return "the server's response is not JSON"
    if code == 0:
        return ""
    reason = document.get("errmsg", document.get("msg", ""))
    return f"the server returns the code {str(code)[:20]}: {str(reason)[:200]}"


def _check_mail(mail: MailSettings | None) -> None:
    if mail is None or not mail.host or not 0 < mail.port < 65536:
        raise ConfigError("a mail channel needs the host and the port of a server")
    if not mail.recipients:
        raise ConfigError("a mail channel needs at least one recipient")
    for address in (mail.sender, *mail.recipients):
        name, at, domain = address.partition("@")
        if not (name and at and domain) or any(sign <= " " or sign in ",<>" for sign in address):
            raise ConfigError(f"{address!r} is no mail address: write name@example.com")
    if mail.password and mail.security is Security.NONE:
        raise ConfigError("a password is sent only with STARTTLS or TLS: choose one of them")


def _webhook(
    channel: Channel, notification: Notification, headers: Mapping[str, str], now_ms: int
) -> WebRequest:
    """Return our own format; the signature covers the timestamp, a dot and the body."""
    fields = {"title": notification.title, "text": notification.text, "at_ms": now_ms}
    request = _json(channel.url, headers, fields | {"labels": dict(notification.labels)})
    if not channel.secret:
        return request
    signed = f"{now_ms}.".encode() + (request.body or b"")
    signature = hmac.new(channel.secret.encode(), signed, hashlib.sha256).hexdigest()
    header = {_SIGNATURE_HEADER: f"t={now_ms},sha256={signature}"}
    return request._replace(headers={**request.headers, **header})


def _dingtalk_url(channel: Channel, now_ms: int) -> str:
    if not channel.secret:
        return channel.url
    text = f"{now_ms}\n{channel.secret}"
    digest = hmac.new(channel.secret.encode(), text.encode(), hashlib.sha256).digest()
    query = urlencode({"timestamp": now_ms, "sign": base64.b64encode(digest).decode()})
    return f"{channel.url}{'&' if urlsplit(channel.url).query else '?'}{query}"


def _feishu_signature(channel: Channel, now_ms: int) -> dict[str, Any]:
    if not channel.secret:
        return {}
    timestamp = str(now_ms // 1000)
    # The text is the key, and the message is empty.
    digest = hmac.new(f"{timestamp}\n{channel.secret}".encode(), b"", hashlib.sha256).digest()
    return {"timestamp": timestamp, "sign": base64.b64encode(digest).decode()}


def _cut(text: str, limit: int) -> str:
    """Return the beginning of a text that has `limit` bytes at most, cut between characters."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def _slack_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _json(url: str, headers: Mapping[str, str], value: Mapping[str, Any]) -> WebRequest:
    return WebRequest(url, json.dumps(value, ensure_ascii=False).encode(), headers)
