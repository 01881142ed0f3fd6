"""Features (KIP-584) with kafka-features, and with clients that depend on them."""

import re
from pathlib import Path

import pytest

from ottla.testing.cluster import Cluster
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]


def features(cluster: Cluster, *arguments: str) -> str:
    """Run kafka-features of Kafka 4.3; return its output, whether it fails or not."""
    done = java.tool(
        java.kafka_class_path("4.3.0"),
        "org.apache.kafka.tools.FeatureCommand",
        *("--bootstrap-server", cluster.bootstrap, *arguments),
    )
    return done.output + done.errors


def finalized(message: str) -> dict[str, str]:
    """Return the finalized levels that `describe` shows."""
    rows = re.findall(r"Feature: (\S+).*FinalizedVersionLevel: (\S+)", message)
    return dict(rows)


def test_levels_are_described_changed_and_persisted(tmp_path: Path) -> None:
    """A level is lowered, raised, rejected, and kept over a restart; the epoch counts the changes."""
    with Cluster(data=tmp_path / "data") as cluster:
        message = features(cluster, "describe")
        assert finalized(message)["transaction.version"] == "2", message
        assert re.search(r"SupportedMinVersion: 0\s+SupportedMaxVersion: 2\s", message), message
        assert "Epoch: 0" in message
        message = features(cluster, "downgrade", "--feature", "transaction.version=0")
        assert "was downgraded to 0" in message, message
        cluster.restart()
        message = features(cluster, "describe")
        assert finalized(message)["transaction.version"] == "0", message
        assert "Epoch: 1" in message
        message = features(cluster, "upgrade", "--feature", "transaction.version=3")
        assert "only supports versions 0-2" in message, message
        message = features(cluster, "upgrade", "--feature", "metadata.version=25")
        assert "does not support this feature" in message, message
        message = features(cluster, "upgrade", "--feature", "transaction.version=2", "--dry-run")
        assert "can be upgraded to 2" in message, message
        assert finalized(features(cluster, "describe"))["transaction.version"] == "0"
        message = features(cluster, "upgrade", "--feature", "transaction.version=2")
        assert "was upgraded to 2" in message, message
        message = features(cluster, "upgrade", "--feature", "transaction.version=1")
        assert "downgrade" in message, message


@pytest.mark.parametrize("level", [0, 2])
def test_java_client_uses_the_finalized_level(tmp_path: Path, level: int) -> None:
    """With level 2 each transaction has its own epoch; with level 0 all have the same one."""
    with Cluster(data=tmp_path / "data") as cluster:
        cluster.create_topic("out")
        if level != 2:
            features(cluster, "downgrade", "--feature", f"transaction.version={level}")
        java.run(
            java.client_class_path("4.3.0"),
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", "out", "--num-records", "400", "--record-size", "100"),
            *("--throughput", "2000", "--transactional-id", "perf"),
            *("--transaction-duration-ms", "20"),
            *("--producer-props", f"bootstrap.servers={cluster.bootstrap}"),
        )
        output = java.run(
            java.kafka_class_path("4.3.0"),
            "org.apache.kafka.tools.TransactionsCommand",
            *("--bootstrap-server", cluster.bootstrap),
            *("describe", "--transactional-id", "perf"),
        )
        heading, row = (line.split() for line in output.splitlines()[-2:])
        entries = dict(zip(heading, row, strict=False))
        assert entries["TransactionState"] == "CompleteCommit", output
        assert (int(entries["ProducerEpoch"]) > 2) is (level == 2), output
