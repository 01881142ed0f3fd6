"""Each channel against a local server: format, signature, refusal."""

import base64
import hashlib
import hmac
import re
import ssl
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_string
from email.policy import default
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ottla.base.errors import ConfigError
from ottla.console.alerts.addresses import Forbidden, parse_networks
from ottla.console.alerts.channels import (
    Channel,
    ChannelKind,
    MailSettings,
    Notification,
    Security,
    request_of,
)
from ottla.console.alerts.sending import NotSent, send
from tests.certificates import self_signed
from tests.unit.console.alerts.receivers import MailServer, Receiver, running

LOCAL = parse_networks(["127.0.0.0/8"])
NOW_MS = 1_700_000_000_123
NOTIFICATION = Notification("[CRITICAL] live: lag", "Group <billing> & co", {"cluster": "live"})
TEXT = f"{NOTIFICATION.title}\n{NOTIFICATION.text}"
SECRET = "SEC000"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a server that responds to each POST with an empty object."""
    with running(Receiver()) as server:
        yield server


@pytest.fixture
def mail() -> Iterator[MailServer]:
    """Return a mail server."""
    with running(MailServer()) as server:
        yield server


def channel(receiver: Receiver, kind: ChannelKind, secret: str = "") -> Channel:
    """Return a channel to the server."""
    return Channel("c", kind, f"{receiver.url}/hook?access_token=t", secret)


def test_slack(receiver: Receiver) -> None:
    """The text is escaped as Slack documents it."""
    send(channel(receiver, ChannelKind.SLACK), NOTIFICATION, NOW_MS, LOCAL)
    assert receiver.last == {"text": "[CRITICAL] live: lag\nGroup &lt;billing&gt; &amp; co"}
    path, headers, _ = receiver.received[0]
    assert path == "/hook?access_token=t"
    assert headers["content-type"].startswith("application/json")


def test_dingtalk_is_signed_in_the_address(receiver: Receiver) -> None:
    """The signature is an HMAC of the time in ms and the secret, by the secret."""
    send(channel(receiver, ChannelKind.DINGTALK, SECRET), NOTIFICATION, NOW_MS, LOCAL)
    assert receiver.last == {"msgtype": "text", "text": {"content": TEXT}}
    query = parse_qs(urlsplit(receiver.received[0][0]).query)
    signed = hmac.new(SECRET.encode(), f"{NOW_MS}\n{SECRET}".encode(), hashlib.sha256)
    assert query == {
        "access_token": ["t"],
        "timestamp": [str(NOW_MS)],
        "sign": [base64.b64encode(signed.digest()).decode()],
    }


def test_feishu_is_signed_in_the_body(receiver: Receiver) -> None:
    """The time in seconds and the secret are the key of an HMAC of nothing."""
    send(channel(receiver, ChannelKind.FEISHU, SECRET), NOTIFICATION, NOW_MS, LOCAL)
    signed = hmac.new(f"{NOW_MS // 1000}\n{SECRET}".encode(), b"", hashlib.sha256)
    assert receiver.last == {
        "timestamp": str(NOW_MS // 1000),
        "sign": base64.b64encode(signed.digest()).decode(),
        "msg_type": "text",
        "content": {"text": TEXT},
    }


def test_feishu_mentions_nobody(receiver: Receiver) -> None:
    """The name of a group that looks like a mention stays text."""
    named = NOTIFICATION._replace(text='Group <at user_id="all">x</at> lags')
    send(channel(receiver, ChannelKind.FEISHU), named, NOW_MS, LOCAL)
    assert "<at " not in receiver.last["content"]["text"]


@pytest.mark.parametrize("kind", [ChannelKind.SLACK, ChannelKind.DINGTALK, ChannelKind.FEISHU])
def test_a_long_text_stays_below_the_limit_of_the_service(
    receiver: Receiver, kind: ChannelKind
) -> None:
    """DingTalk and Feishu refuse bodies of more than 20 000 bytes; quotes become longer as JSON."""
    for text in ("积" * 30_000, '"' * 90_000):
        request = request_of(channel(receiver, kind), NOTIFICATION._replace(text=text), NOW_MS)
        assert len(request.body) < 20_000


def test_wecom_has_a_limited_length(receiver: Receiver) -> None:
    """A long text is cut between characters, never inside of one."""
    send(channel(receiver, ChannelKind.WECOM), NOTIFICATION, NOW_MS, LOCAL)
    assert receiver.last == {"msgtype": "text", "text": {"content": TEXT}}
    long = NOTIFICATION._replace(text="积" * 3000)
    request = request_of(channel(receiver, ChannelKind.WECOM), long, NOW_MS)
    assert len(request.body) < 2200


def test_webhook_is_signed_in_a_header(receiver: Receiver) -> None:
    """The receiver checks the time and the body with the shared secret."""
    send(channel(receiver, ChannelKind.WEBHOOK, SECRET), NOTIFICATION, NOW_MS, LOCAL)
    _, headers, body = receiver.received[0]
    digest = hmac.new(SECRET.encode(), f"{NOW_MS}.".encode() + body, hashlib.sha256).hexdigest()
    assert headers["x-ottla-signature"] == f"t={NOW_MS},sha256={digest}"
    assert receiver.last["labels"] == {"cluster": "live"}
    assert SECRET.encode() not in body


@pytest.mark.parametrize(
    ("kind", "status", "response", "reason"),
    [
        (ChannelKind.SLACK, 404, b"no_service", "the server answers 404"),
        (ChannelKind.WEBHOOK, 302, b"", "the server answers 302"),
        (ChannelKind.DINGTALK, 200, b'{"errcode":310000,"errmsg":"sign"}', "310000: sign"),
        (ChannelKind.WECOM, 200, b'{"errcode":93000,"errmsg":"key"}', "93000: key"),
        (ChannelKind.FEISHU, 200, b'{"code":19021,"msg":"sign"}', "19021: sign"),
        (ChannelKind.FEISHU, 200, b"<html>", "not JSON"),
    ],
)
def test_a_refusal_is_reported(
    receiver: Receiver, kind: ChannelKind, status: int, response: bytes, reason: str
) -> None:
    """Also those that have the status 200; a redirect is not followed."""
    receiver.status, receiver.answer = status, response
    receiver.headers = {"location": f"{receiver.url}/other"}
    with pytest.raises(NotSent, match=reason):
        send(channel(receiver, kind), NOTIFICATION, NOW_MS, LOCAL)
    assert len(receiver.received) == 1


def test_mail(mail: MailServer) -> None:
    """Every recipient receives it; a line break in the title adds no header."""
    settings = MailSettings(
        "127.0.0.1", mail.port, Security.NONE, sender="a@b.c", recipients=("d@e.f", "g@h.i")
    )
    item = Channel("m", ChannelKind.MAIL, mail=settings)
    send(item, NOTIFICATION._replace(title="lag\nBcc: x@y.z"), NOW_MS, LOCAL)
    assert mail.recipients == ["d@e.f", "g@h.i"]
    assert "Subject: lag Bcc: x@y.z\r\n" in mail.mails[0]
    read = message_from_string(mail.mails[0], policy=default)
    # RFC 5322 requires the date.
    assert read["Date"].datetime.timestamp() == NOW_MS // 1000
    assert re.fullmatch(rf"<{NOW_MS}\.[0-9a-f]{{16}}@b\.c>", read["Message-ID"])
    assert read["Auto-Submitted"] == "auto-generated"
    assert NOTIFICATION.text in mail.mails[0]
    mail.refuses = True
    with pytest.raises(NotSent, match="cannot be reached"):
        send(item, NOTIFICATION, NOW_MS, LOCAL)


def test_starttls_is_required_if_configured(mail: MailServer) -> None:
    """A server without TLS gets neither the password nor the mail."""
    settings = MailSettings(
        "127.0.0.1", mail.port, user="u", password="p", sender="a@b.c", recipients=("d@e.f",)
    )
    with pytest.raises(NotSent):
        send(Channel("m", ChannelKind.MAIL, mail=settings), NOTIFICATION, NOW_MS, LOCAL)
    assert mail.mails == []


@pytest.mark.parametrize("security", [Security.STARTTLS, Security.TLS])
def test_the_certificate_of_a_mail_server_is_verified(
    security: Security, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A self-signed certificate is refused, until SSL_CERT_FILE names it; then all is encrypted."""
    certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with running(MailServer(context, is_tls=security is Security.TLS)) as server:
        settings = MailSettings(
            "127.0.0.1", server.port, security, sender="a@b.c", recipients=("d@e.f",)
        )
        item = Channel("m", ChannelKind.MAIL, mail=settings)
        with pytest.raises(NotSent, match="certificate"):
            send(item, NOTIFICATION, NOW_MS, LOCAL)
        assert server.mails == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        send(item, NOTIFICATION, NOW_MS, LOCAL)
        assert server.is_encrypted
        assert NOTIFICATION.text in server.mails[0]


def test_the_name_in_the_certificate_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trusted certificate of another host is refused."""
    certificate = self_signed(tmp_path, "192.0.2.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with running(MailServer(context, is_tls=True)) as server:
        settings = MailSettings(
            "127.0.0.1", server.port, Security.TLS, sender="a@b.c", recipients=("d@e.f",)
        )
        with pytest.raises(NotSent, match="not valid for"):
            send(Channel("m", ChannelKind.MAIL, mail=settings), NOTIFICATION, NOW_MS, LOCAL)


def test_local_addresses_are_forbidden_unless_configured(receiver: Receiver) -> None:
    """Nothing is sent, and the message says what to configure."""
    for url in (receiver.url, receiver.url.replace("127.0.0.1", "localhost")):
        item = replace(channel(receiver, ChannelKind.SLACK), url=url)
        with pytest.raises(Forbidden, match="allowed_networks"):
            send(item, NOTIFICATION, NOW_MS, ())
    assert receiver.received == []


def test_an_error_does_not_contain_the_url(receiver: Receiver) -> None:
    """The token in the URL is a secret; the host is enough to find the fault."""
    item = channel(receiver, ChannelKind.SLACK)
    receiver.shutdown()
    receiver.server_close()
    with pytest.raises(NotSent, match=r"127\.0\.0\.1") as caught:
        send(item, NOTIFICATION, NOW_MS, LOCAL)
    assert "token" not in str(caught.value)
    assert "token" not in repr(item)


@pytest.mark.parametrize(
    "wrong",
    [
        Channel("", ChannelKind.SLACK, "https://a.b"),
        Channel("c", ChannelKind.SLACK, "file:///etc/passwd"),
        Channel("c", ChannelKind.SLACK, "gopher://a.b"),
        Channel("c", ChannelKind.SLACK, "https://user:pass@a.b"),
        Channel("c", ChannelKind.SLACK, "https://a.b/\r\nx: y"),
        Channel("c", ChannelKind.SLACK, "https://a.b:99999"),
        Channel("c", ChannelKind.SLACK, "https://"),
        Channel("c", ChannelKind.SLACK, "https://a.b", "secret"),
        Channel("c", ChannelKind.MAIL),
        Channel("c", ChannelKind.MAIL, mail=MailSettings("h", sender="a@b.c")),
        Channel("c", ChannelKind.MAIL, mail=MailSettings("h", sender="a", recipients=("d@e.f",))),
        Channel(
            "c",
            ChannelKind.MAIL,
            mail=MailSettings("h", sender="a@b.c", recipients=("d@e.f\r\nRCPT",)),
        ),
        Channel(
            "c",
            ChannelKind.MAIL,
            mail=MailSettings(
                "h", 25, Security.NONE, "u", "p", sender="a@b.c", recipients=("d@e.f",)
            ),
        ),
    ],
)
def test_a_malformed_channel_is_refused(wrong: Channel) -> None:
    """Only http and https URLs without a user, and whole mail settings."""
    with pytest.raises(ConfigError):
        wrong.check()
