"""The script kafka-acls asks before it removes entries, and fails without a confirmation."""

import io
import sys
from collections.abc import Iterator

import pytest

from ottla.testing import Cluster
from ottla_scripts import entry

pytestmark = pytest.mark.slow

_OPTIONS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
_ENTRY = ["--allow-principal", "User:Bob", "--operation", "Read", "--topic", "orders"]


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[Cluster]:
    with Cluster(options=_OPTIONS) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("answer", "code", "remains"), [("y\n", 0, False), ("n\n", 0, True), ("", 1, True)]
)
def test_missing_answer_is_an_error(
    answer: str,
    code: int,
    remains: bool,
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A script without a terminal fails, as Apache Kafka's tool does, and removes nothing."""
    at = ["--bootstrap-server", cluster.bootstrap]
    assert entry.run("kafka-acls", [*at, "--add", *_ENTRY]) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    capsys.readouterr()
    assert entry.run("kafka-acls", [*at, "--remove", *_ENTRY]) == code
    assert ("add --force" in capsys.readouterr().out) is (not answer)
    entry.run("kafka-acls", [*at, "--list", "--topic", "orders"])
    assert ("User:Bob" in capsys.readouterr().out) is remains
