"""`--print-metrics` of the performance scripts, run against a broker."""

import json

import pytest

from ottla.testing import Cluster
from ottla_scripts import entry

pytestmark = pytest.mark.slow


def test_scripts_print_the_metrics_of_their_run(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last report of librdkafka has the whole run."""
    ottla_cluster.create_topic("t", partitions=1)
    where = ["--bootstrap-server", ottla_cluster.bootstrap, "--topic", "t", "--print-metrics"]
    records = ["--num-records", "20", "--record-size", "9", "--throughput", "-1"]
    assert entry.run("kafka-producer-perf-test", [*where, *records]) == 0
    total, _, table = capsys.readouterr().out.partition("\n\n")
    assert total.startswith("20 records sent")
    line = "producer-metrics:record-send-total:{client-id=perf-producer-client}"
    assert [row.split()[-1] for row in table.splitlines() if row.startswith(line)] == ["20.000"]
    words = ["--num-records", "20", "--output", "json"]
    assert entry.run("kafka-consumer-perf-test", [*where, *words]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert metrics["consumer-fetch-manager-metrics:records-consumed-total"] == 20
    assert metrics["consumer-fetch-manager-metrics:fetch-total"] >= 1
    assert metrics["consumer-coordinator-metrics:assigned-partitions"] == 1
