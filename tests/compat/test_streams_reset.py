"""`ottla streams reset` and kafka-streams-application-reset have the same options and the same
offsets as result.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.client.admin.offsets import CommittedOffset, commit_offsets, committed_offsets
from ottla.testing.cluster import Cluster
from ottla.tools import main
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

_TOOL = "org.apache.kafka.tools.StreamsResetter"
_START = 1_600_000_000_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a broker with two topics of two partitions, of which each application has read a part."""
    with Cluster() as running:
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for topic in ("one", "two"):
            running.create_topic(topic, partitions=2, config={"retention.ms": "-1"})
            for n in range(20):
                producer.produce(topic, b"x", partition=n % 2, timestamp=_START + 1000 * n)
        assert producer.flush(10) == 0
        yield running


def _reset_by_kafka(cluster: Cluster, *words: str) -> dict[tuple[str, int], int]:
    arguments = ("--bootstrap-server", cluster.bootstrap, "--application-id", "theirs")
    java.run(java.kafka_class_path("4.3.0"), _TOOL, *arguments, *words)
    return _committed(cluster, "theirs")


def _reset_here(cluster: Cluster, folder: Path, *words: str) -> dict[tuple[str, int], int]:
    arguments = (
        "-b",
        cluster.bootstrap,
        "--application-id",
        "ours",
        "--state-dir",
        str(folder),
    )
    assert main.run(("streams", "reset", *arguments, *words, "--execute")) == 0
    return _committed(cluster, "ours")


def _committed(cluster: Cluster, group: str) -> dict[tuple[str, int], int]:
    with cluster.admin() as brokers:
        return {key: each.offset for key, each in committed_offsets(brokers, group).items()}


@pytest.mark.parametrize(
    "words",
    [
        "--input-topics one",
        "--input-topics one,two --to-earliest",
        "--input-topics one --to-latest",
        "--input-topics one --to-offset 7",
        "--input-topics one --to-offset 99",
        "--input-topics two --shift-by -2",
        "--input-topics two --shift-by 50",
        "--input-topics one --to-datetime 2020-09-13T12:26:49.500",
        "--input-topics one --by-duration P1D",
        "--input-topics one --from-file PLAN",
        "--intermediate-topics two",
        "--input-topics one --to-offset 3 --intermediate-topics two",
    ],
)
def test_the_offsets_are_those_of_kafkas_tool(cluster: Cluster, tmp_path: Path, words: str) -> None:
    """Offsets are the same for named and other topics, within the range of each partition."""
    (tmp_path / "plan.csv").write_text("one,0,2\none,1,77\n")
    options = words.replace("PLAN", str(tmp_path / "plan.csv")).split()
    before = {("one", 0): 4, ("one", 1): 5, ("two", 0): 6, ("two", 1): 1}
    with cluster.admin() as brokers:
        for group in ("theirs", "ours"):
            read = {key: CommittedOffset(offset) for key, offset in before.items()}
            commit_offsets(brokers, group, read)
    expected = _reset_by_kafka(cluster, *options)
    assert _reset_here(cluster, tmp_path, *options) == expected
    assert len(expected) == len(before)
