"""Scripts that read and write records: topics by expression, commits, warm-up."""

import json

import pytest

from ottla.base.errors import OttlaError
from ottla.client.raw.consumer import RecordConsumer
from ottla.testing import Cluster
from ottla_scripts import entry
from ottla_scripts.console.included import IncludedTopics
from ottla_scripts.exits import UsageError
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

_CLIENT = {"client.id": "test"}


def test_expression_excludes_internal_topics(ottla_cluster: Cluster) -> None:
    """As a Java consumer does, unless exclude.internal.topics is false."""
    ottla_cluster.create_topic("one")
    ottla_cluster.create_topic("__consumer_offsets")
    included = IncludedTopics("(?i).*O.*", ottla_cluster.bootstrap, _CLIENT)
    assert included.wait(lambda: True) == ["one"]
    properties = {**_CLIENT, "exclude.internal.topics": "false"}
    included = IncludedTopics(".*", ottla_cluster.bootstrap, properties)
    assert included.wait(lambda: True) == ["__consumer_offsets", "one"]


def test_expression_is_looked_up_again(ottla_cluster: Cluster) -> None:
    """A new topic is found once the former result is old."""
    included = IncludedTopics("orders.*", ottla_cluster.bootstrap, _CLIENT)
    assert included.wait(lambda: False) == []
    ottla_cluster.create_topic("orders-1")
    assert not included.has_changed()
    included.next_look_up = 0
    assert included.has_changed()
    assert included.names == ["orders-1"]
    included.next_look_up = 0
    assert not included.has_changed()


def test_wrong_expression_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """The error has the expression."""
    with pytest.raises(UsageError, match=r"^--include 'a\[' is not a regular expression: "):
        IncludedTopics("a[", "localhost:1", _CLIENT)


def test_failed_commit_is_an_event_without_success(
    ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """kafka-verifiable-consumer reports the result of each commit."""
    ottla_cluster.create_topic("verified")
    produce(ottla_cluster, "verified", [b"a"])

    def fail(consumer: RecordConsumer, positions: object) -> None:
        raise OttlaError("not now")

    monkeypatch.setattr(RecordConsumer, "commit", fail)
    arguments = ["--bootstrap-server", ottla_cluster.bootstrap, "--topic", "verified",
                 "--group-id", "verifiers", "--max-messages", "1"]  # fmt: skip
    assert entry.run("kafka-verifiable-consumer", arguments) == 0
    events = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    event = events["offsets_committed"]
    assert (event["error"], event["success"]) == ("not now", False)


def test_json_has_the_steady_state_in_an_object(
    ottla_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The totals contain the records of --warmup-records; `steady_state` does not."""
    arguments = ["--bootstrap-server", ottla_cluster.bootstrap, "--topic", "warm", "--output=json",
                 "--num-records", "10", "--warmup-records", "4", "--throughput", "-1",
                 "--record-size", "5"]  # fmt: skip
    assert entry.run("kafka-producer-perf-test", arguments) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (totals,) = [row for row in rows if "messages" not in row]
    assert (totals["records"], totals["steady_state"]["records"]) == (10, 6)
