"""`ottla log dirs`: the sizes of replicas by broker and log directory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.testing import Cluster
from ottla.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from tests.integration.tools.test_mirror import produce
from tests.unit.client.conftest import ScriptedBroker


def test_sizes_are_listed_by_directory(run: Any, ottla_cluster: Cluster) -> None:
    """Each replica has its broker, its directory and its bytes; a topic selects its replicas."""
    run("topic", "create", "a", "--partitions", "2")
    run("topic", "create", "b")
    produce(ottla_cluster, "b", [b"1"])
    rows = run("log", "dirs", "a", "b", "--output", "json").json
    assert [(row["topic"], row["partition"]) for row in rows] == [("a", 0), ("a", 1), ("b", 0)]
    assert {row["broker"] for row in rows} == {1}
    assert [row["size"] > 0 for row in rows] == [False, False, True]
    done = run("log", "dirs", "b", "--broker", "1")
    assert (done.code, [row[2:4] for row in done.rows]) == (0, [["b", "0"]])
    assert "3 replicas" in done.errors
    assert "free" in done.errors


def test_one_broker_of_several_is_selected(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """--broker shows the replicas of this broker only."""
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("a", replication_factor=2)
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        everything = run("log", "dirs", "--output", "json").json
        assert [row["broker"] for row in everything] == [1, 2]
        assert len({row["directory"] for row in everything}) == 2
        (row,) = run("log", "dirs", "--broker", "2", "--output", "json").json
        assert row["broker"] == 2


def test_stray_logs_are_listed_by_their_folders(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stray log belongs to no topic: it is shown unless topics are selected."""
    folder = tmp_path / "orders-3.0123-stray"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(bytes(2048))
    with Cluster(brokers=1, data=tmp_path) as cluster:
        cluster.create_topic("a")
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        rows = run("log", "dirs", "--output", "json").json
        assert [row["topic"] for row in rows] == ["a", folder.name]
        assert rows[1]["partition"] is None
        assert rows[1]["size"] >= 2048
        assert "1 stray log with 2.1 kB" in run("log", "dirs").errors
        assert [row["topic"] for row in run("log", "dirs", "a", "--output", "json").json] == ["a"]


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["none"], "There is no topic 'none'"),
        (["--broker", "7"], "Broker 7 is not running; running brokers: 1"),
        (["--broker", "x"], "'x' is not a whole number"),
    ],
)
def test_wrong_selection_is_a_sentence(run: Any, command_line: list[str], sentence: str) -> None:
    """The sentence names the topic or the broker, and nothing is printed as a result."""
    done = run("log", "dirs", *command_line)
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors


def test_offline_directory_is_reported(
    run: Any, new_broker: Callable[..., ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other directories are shown, and the exit code is 1."""
    broker = new_broker(node_id=1)
    address = broker.address
    broker.answers["DescribeCluster"] = lambda _: DescribeClusterResponse(
        brokers=[DescribeClusterBroker(broker_id=1, host=address.host, port=address.port)]
    )
    broker.answers["DescribeLogDirs"] = lambda _: DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(log_dir="/good"),
            DescribeLogDirsResult(
                log_dir="/bad", error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), topics=[]
            ),
        ]
    )
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)
    done = run("log", "dirs")
    assert done.code == 1
    assert "Broker 1, /bad: offline: replace the disk" in done.errors
    assert "Broker 1, /good: 0 replicas" in done.errors
