"""Refused logins and untrusted certificates end a transfer of records instead of being retried."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.errors import HandshakeFailed
from ottla.client.raw.consumer import RecordConsumer
from ottla.client.raw.producer import RecordProducer
from ottla.client.security.refusals import refusal
from ottla.testing import Cluster
from tests.certificates import self_signed, tls_options

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Run a broker with a listener that needs TLS and a password."""
    options = {
        **tls_options(tmp_path),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (f'{_PLAIN} required user_ann="secret";'),
    }
    with Cluster(options=options) as cluster:
        yield cluster


def _settings(folder: Path, password: str, authority: str = "server") -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(folder / f"{authority}.crt"),
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": password,
    }


def test_refused_login_ends_a_transfer(cluster: Cluster, tmp_path: Path) -> None:
    """The producer and the consumer raise the broker's reason, as the Java client does."""
    settings = _settings(tmp_path, "wrong")
    with (
        pytest.raises(ApiError, match="refuses the user: Authentication failed") as refused,
        RecordProducer(cluster.bootstrap_of("SASL_SSL"), settings) as producer,
    ):
        producer.send("t", b"x")
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.value.message.startswith("Authentication failed: ")
    with (
        RecordConsumer(
            cluster.bootstrap_of("SASL_SSL"), group_id="g", settings=settings
        ) as consumer,
        pytest.raises(ApiError, match="refuses the user"),
    ):
        consumer.subscribe(["t"], lambda _: None)
        while True:
            consumer.poll(0.1)


def test_untrusted_certificate_ends_a_transfer(cluster: Cluster, tmp_path: Path) -> None:
    """The error names the address, and the reason of the TLS library."""
    self_signed(tmp_path, name="other")
    settings = _settings(tmp_path, "secret", "other")
    with (
        pytest.raises(HandshakeFailed, match=r"cannot be reached with TLS: .*verify failed"),
        RecordProducer(cluster.bootstrap_of("SASL_SSL"), settings) as producer,
    ):
        producer.send("t", b"x")


def test_user_with_the_password_writes_records(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing is refused."""
    with RecordProducer(
        cluster.bootstrap_of("SASL_SSL"), _settings(tmp_path, "secret")
    ) as producer:
        producer.send("t", b"x")
    assert producer.delivered == 1


class _Reported(NamedTuple):
    code: str
    text: str

    def name(self) -> str:
        return self.code

    def str(self) -> str:
        return self.text


@pytest.mark.parametrize(
    ("code", "text", "sentence"),
    [
        (
            "_AUTHENTICATION",
            "sasl_ssl://[::1]:9/bootstrap: SASL authentication error: No (after 3ms in state AUTH)",
            "[::1]:9 refuses the user: No",
        ),
        ("_AUTHENTICATION", "no such user", "the broker refuses the user: no such user"),
        (
            "_SSL",
            "ssl://h:9/1: SSL handshake failed: certificate verify failed: x (after 1ms in state A)",
            "h:9 cannot be reached with TLS: certificate verify failed: x",
        ),
        (
            "_TRANSPORT",
            "ssl://h:9/bootstrap: error:0A:SSL routines::certificate verify failed",
            "h:9 cannot be reached with TLS: error:0A:SSL routines::certificate verify failed",
        ),
        ("_SSL", "ssl://h:9/1: SSL handshake failed: Disconnected", None),
        ("_TRANSPORT", "h:9/1: Connect failed", None),
    ],
)
def test_reports_of_librdkafka_are_read(code: str, text: str, sentence: str | None) -> None:
    """A handshake that is cut off may succeed in a retry; a wrong certificate never does."""
    error = refusal(_Reported(code, text))
    assert (None if error is None else str(error)) == sentence
