"""`--blacklist` of the console consumer of Apache Kafka 1.1 and before."""

import re

import pytest

from ottla.testing import Cluster
from ottla_scripts import entry
from ottla_scripts.console.included import without_blacklist
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("expression", "excluded", "included"),
    [
        ("orders", ["orders"], ["orders-2", "my-orders", "other"]),
        ("orders,bills", ["orders", "bills"], ["bill"]),
        ("(?i)ORD.*", ["orders", "Ord"], ["lord"]),
        ("'a|b'", ["a", "b"], ["ab"]),
    ],
)
@pytest.mark.parametrize("has_equals", [True, False])
def test_blacklist_includes_all_other_topics(
    expression: str, excluded: list[str], included: list[str], has_equals: bool
) -> None:
    """A comma is an alternative, and the whole name must match."""
    words = [f"--blacklist={expression}"] if has_equals else ["--blacklist", expression]
    *others, name, pattern = without_blacklist(["--from-beginning", *words])
    assert (others, name) == (["--from-beginning"], "--include")
    assert [topic for topic in excluded if re.fullmatch(pattern, topic)] == []
    assert [topic for topic in included if re.fullmatch(pattern, topic)] == included


def test_other_command_lines_are_unchanged() -> None:
    """So is one whose option lacks its value."""
    for words in ([], ["--topic", "a"], ["--topic", "a", "--blacklist"]):
        assert without_blacklist(words) == words


def test_records_of_other_topics_are_read(
    ottla_cluster: Cluster, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A notice on standard error has the option to use instead."""
    for topic in ("orders", "bills"):
        produce(ottla_cluster, topic, [topic.encode()])
    line = ["--bootstrap-server", ottla_cluster.bootstrap, "--from-beginning"]
    limits = ["--max-messages", "1", "--timeout-ms", "20000"]
    assert entry.run("kafka-console-consumer", [*line, "--blacklist", "orders", *limits]) == 0
    out, errors = capfdbinary.readouterr()
    assert out == b"bills\n"
    assert errors.startswith(
        b"Option --blacklist is from an earlier version; use --include '(?!(?:orders)$).*' instead."
    )
