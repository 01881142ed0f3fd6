"""Plans of kafka-consumer-groups --reset-offsets: exported as CSV, and read again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.admin import offsets
from ottla.testing import Cluster
from ottla_scripts import entry
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[Cluster]:
    with Cluster(options={"offsets.topic.num.partitions": "1"}) as cluster:
        cluster.create_topic("o", partitions=1)
        produce(cluster, "o", [b"1", b"2", b"3"])
        yield cluster


def _reset(cluster: Cluster, *words: str) -> int:
    line = ["--bootstrap-server", cluster.bootstrap, "--reset-offsets", "--group", "g", *words]
    return entry.run("kafka-consumer-groups", line)


def test_exported_plan_ends_with_an_empty_line_and_is_read_again(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Apache Kafka's tool prints the empty line, and ignores it in a file."""
    assert _reset(cluster, "--topic", "o", "--to-latest", "--export", "--dry-run") == 0
    exported = capsys.readouterr().out
    assert exported == "o,0,3\n\n"
    file = tmp_path / "plan.csv"
    file.write_text(exported)
    assert _reset(cluster, "--from-file", str(file), "--execute") == 0
    with cluster.admin() as brokers:
        assert offsets.committed_offsets(brokers, "g")["o", 0].offset == 3


@pytest.mark.parametrize("text", ["1h", "90s", "1d", "P1M", ""])
def test_duration_without_p_changes_no_offset(
    text: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Apache Kafka's tool reads only ISO 8601, also with --execute."""
    with cluster.admin() as brokers:
        before = offsets.committed_offsets(brokers, "g")
        assert _reset(cluster, "--topic", "o", "--by-duration", text, "--execute") == 0
        assert offsets.committed_offsets(brokers, "g") == before
    assert "Text cannot be parsed to a Duration" in capsys.readouterr().out


def test_negative_offset_of_a_plan_is_refused(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Apache Kafka's tool refuses it, too, and nothing is committed."""
    file = tmp_path / "plan.csv"
    file.write_text("o,0,-5\n")
    assert _reset(cluster, "--from-file", str(file), "--execute") == 1
    assert "Invalid negative offset" in capsys.readouterr().err


def test_plan_with_an_empty_line_between_others_is_refused(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence is the Java tool's."""
    file = tmp_path / "plan.csv"
    file.write_text("o,0,1\n\no,0,2\n")
    _reset(cluster, "--from-file", str(file), "--dry-run")
    assert "No content to map due to end-of-input" in capsys.readouterr().out
