"""Console scripts whose user, certificate or rights are refused end at once, with the reason."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.admin import acls
from ottla.testing import Cluster
from ottla_scripts import entry
from tests.certificates import self_signed, tls_options

pytestmark = pytest.mark.slow

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_ERRORS = "org.apache.kafka.common.errors"
_BEN_READS = acls.AclBinding(
    acls.ResourcePattern(acls.ResourceType.TOPIC, "orders"),
    acls.AccessControlEntry("User:ben", "*", acls.AclOperation.READ, acls.PermissionType.ALLOW),
)
_SCRIPTS = {
    "kafka-console-producer": "--topic orders",
    "kafka-console-consumer": "--topic orders --from-beginning",
    "kafka-console-consumer --group": "--topic orders --group readers",
    "kafka-console-consumer --include": "--include ord.*",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Return the address of a listener with TLS, SASL and an authorizer, and a folder.

    The folder has properties of users without rights, except that ben may read the topic.
    """
    folder = tmp_path_factory.mktemp("refused")
    options = {
        # Wrong passwords of some tests must not delay the logins of others.
        "connection.failed.authentication.free.count": "1000",
        **tls_options(folder),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{_PLAIN} required user_ann="secret" user_ben="secret";'
        ),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    self_signed(folder, name="other")
    for name, user, password, authority in (
        ("ann", "ann", "secret", "server"),
        ("ben", "ben", "secret", "server"),
        ("wrong", "ann", "other", "server"),
        ("untrusted", "ann", "secret", "other"),
    ):
        rows = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN} required username="{user}" password="{password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / f"{authority}.crt"),
        }
        (folder / name).write_text("".join(f"{key}={text}\n" for key, text in rows.items()))
    with Cluster(options=options) as cluster:
        cluster.create_topic("orders")
        with cluster.admin() as brokers:
            acls.create_acls(brokers, [_BEN_READS])
        yield cluster.bootstrap_of("SASL_SSL"), folder


def _run(script: str, user: str, place: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> int:
    bootstrap, folder = place
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
    line = ["--bootstrap-server", bootstrap, "--command-config", str(folder / user)]
    return entry.run(script.partition(" ")[0], [*line, *_SCRIPTS[script].split()])


def _code_of(script: str) -> int:
    """Return the exit code: Apache Kafka's consumer logs the error and ends with 0."""
    return 0 if script.startswith("kafka-console-consumer") else 1


@pytest.mark.parametrize("script", _SCRIPTS)
def test_wrong_password_is_a_sentence(
    script: str,
    address: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is the broker's, without a warning that no broker can be reached."""
    assert _run(script, "wrong", address, monkeypatch) == _code_of(script)
    errors = capsys.readouterr().err
    sentence = "SaslAuthenticationException: Authentication failed: Invalid username or password"
    assert f"{_ERRORS}.{sentence}" in errors
    assert "WARN" not in errors


@pytest.mark.parametrize("script", _SCRIPTS)
def test_untrusted_certificate_is_a_sentence(
    script: str,
    address: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line before it has the address and the reason."""
    assert _run(script, "untrusted", address, monkeypatch) == _code_of(script)
    reason, sentence = capsys.readouterr().err.splitlines()[:2]
    assert f"due to: {address[0]} cannot be reached with TLS: " in reason
    assert "certificate verify failed" in reason
    assert f"{_ERRORS}.SslAuthenticationException: SSL handshake failed" in sentence


@pytest.mark.parametrize(
    ("user", "script", "sentence"),
    [
        ("ann", "kafka-console-producer", "TopicAuthorizationException: Not authorized to access topics: [orders]"),
        ("ann", "kafka-console-consumer", "TopicAuthorizationException: Not authorized to access topics: [orders]"),
        ("ann", "kafka-console-consumer --group", "TopicAuthorizationException: Not authorized to access topics: [orders]"),
        ("ben", "kafka-console-consumer --group", "GroupAuthorizationException: Not authorized to access group: readers"),
    ],
)  # fmt: skip
def test_missing_right_is_a_sentence(
    user: str,
    script: str,
    sentence: str,
    address: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is the Java client's, with its exception; Java looks for the topic before the group."""
    assert _run(script, user, address, monkeypatch) == _code_of(script)
    assert f"{_ERRORS}.{sentence}" in capsys.readouterr().err
