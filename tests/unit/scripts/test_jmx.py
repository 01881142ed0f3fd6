"""`kafka-jmx`: its addresses, its formats of dates, and `JMX_PORT`."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from ottla_scripts.exits import UsageError
from ottla_scripts.jmx.date_format import DateFormat
from ottla_scripts.jmx.reader import Address, address_of
from ottla_scripts.servers import broker, daemon

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("service:jmx:rmi:///jndi/rmi://:9999/jmxrmi", ("127.0.0.1", 9999, "/jmx", False)),
        ("service:jmx:rmi://h/jndi/rmi://[::1]:1/jmxrmi", ("::1", 1, "/jmx", False)),
        ("http://h:8778/jolokia/", ("h", 8778, "/jolokia", False)),
        ("https://h:1", ("h", 1, "/jmx", True)),
        ("h:9308", ("h", 9308, "/jmx", False)),
    ],
)
def test_address_of_a_url(url: str, address: tuple[Any, ...]) -> None:
    """The forms of Java, of Jolokia, and the port alone."""
    assert address_of(url) == Address(*address)


@pytest.mark.parametrize("url", ["service:jmx:jmxmp://h:1", "http://h", "ftp://h:1", "h:x", ""])
def test_other_urls_are_refused(url: str) -> None:
    """The error has the forms that can be used."""
    with pytest.raises(UsageError, match=r"use http://HOST:PORT/jmx"):
        address_of(url)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss,SSS", "2026-03-01 00:05:09,007"),
        ("yyyy.MM.dd 'at' HH:mm z", "2026.03.01 at 00:05 UTC+01:30"),
        ("EEE, MMM d, ''yy", "Sun, Mar 1, '26"),
        ("EEEE d MMMM y u D", "Sunday 1 March 2026 7 60"),
        ("h:mm a, k, K", "12:05 AM, 24, 0"),
        (f"HHmmssZ X XX {'X' * 3}", "000509+0130 +01 +0130 +01:30"),
        ("'o''clock'", "o'clock"),
    ],
)
def test_date_format_is_that_of_java(pattern: str, text: str) -> None:
    """The texts are the same as of java.text.SimpleDateFormat in English."""
    zone = timezone(timedelta(hours=1, minutes=30))
    moment = datetime(2026, 3, 1, 0, 5, 9, 7_999, tzinfo=zone)
    assert DateFormat(pattern).format(moment) == text


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [("b", "Illegal pattern character 'b'"), ("'", "Unterminated quote"), ("Y", "not supported")],
)
def test_wrong_date_format_is_an_error(pattern: str, sentence: str) -> None:
    """The sentences are Java's, except for letters that are not supported."""
    with pytest.raises(UsageError, match=sentence):
        DateFormat(pattern)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("", ["--option", "metrics.listener=127.0.0.1:9999"]),
        ("metrics.listener=0.0.0.0:9308\n", []),
    ],
)
def test_jmx_port_opens_the_http_port(
    own: str, expected: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`JMX_PORT=9999 kafka-server-start …` of the notes is read by `kafka-jmx` without options."""
    (tmp_path / "server.properties").write_text(f"node.id=1\n{own}")
    lines: list[list[str]] = []
    monkeypatch.setattr(daemon, "start", lambda kind, line, is_daemon: lines.append(line) or 0)
    monkeypatch.setenv("JMX_PORT", "9999")
    assert broker.run("kafka-server-start", ["-daemon", str(tmp_path / "server.properties")]) == 0
    assert lines[0][6:] == expected
