"""`ottla broker metrics`: values from the HTTP ports of brokers, filtered by name."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.testing import Cluster
from ottla.tools.broker.monitoring import metrics

_LEADERS = "kafka.server:type=ReplicaManager,name=LeaderCount"


@pytest.fixture(name="served", scope="module")
def _served() -> Iterator[Cluster]:
    """Return two brokers with HTTP ports; one leads two partitions, the other one leads one."""
    with Cluster(brokers=2, options={"metrics.listener": "127.0.0.1:0"}) as cluster:
        cluster.create_topic("a", partitions=3)
        yield cluster


def _ports(cluster: Cluster) -> dict[int, tuple[str, int]]:
    ports = {number: cluster.node(number).monitoring_address for number in cluster.brokers}
    return {number: address for number, address in ports.items() if address is not None}


@pytest.fixture(name="metrics")
def _metrics(served: Cluster, run: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs the verb; the brokers' free ports are not in their options."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", served.bootstrap)
    monkeypatch.setattr(metrics, "http_addresses", lambda brokers: _ports(served))
    return lambda *words: run("broker", "metrics", *words)


def test_metrics_of_each_broker_are_shown(metrics: Any) -> None:
    """A pattern is a part of a name; the table and JSON have a row for each broker."""
    done = metrics("replicamanager,name=LeaderC")
    assert done.code == 0, done.errors
    assert [row[:3] for row in done.rows] == [[str(n), _LEADERS, "Value"] for n in (1, 2)]
    rows = metrics("LeaderCount", "--output", "json").json
    assert sum(row["value"] for row in rows) == 3
    assert {row["name"] for row in rows} == {_LEADERS}


def test_wildcards_match_whole_names(metrics: Any) -> None:
    """`*` is any text and `?` any letter; --attribute and --broker narrow the result."""
    words = ("kafka.server:type=BrokerTopicMetrics,name=Bytes??PerSec", "--broker", "2")
    rows = metrics(*words, "-a", "Count", "-a", "MeanRate", "--output", "json").json
    assert {row["broker"] for row in rows} == {2}
    assert [row["attribute"] for row in rows] == ["Count", "MeanRate"]
    assert metrics("name=LeaderCount*").code == 1


def test_all_metrics_are_shown_without_a_pattern(metrics: Any) -> None:
    """Values are numbers, texts, or several parts."""
    rows = metrics("--output", "json").json
    assert len({row["name"] for row in rows}) > 100
    assert "CONNECTED" in {row["value"] for row in rows if isinstance(row["value"], str)}


def test_port_can_be_named(metrics: Any, served: Cluster) -> None:
    """`--http` reads one port, also of a broker that does not describe its options."""
    host, port = _ports(served)[1]
    (row,) = metrics("LeaderCount", "--http", f"{host}:{port}", "--output", "json").json
    assert (row["broker"], row["name"]) == (None, _LEADERS)


def test_ports_are_those_of_the_brokers_options(run: Any) -> None:
    """A broker without the option is an error that names it."""
    done = run("broker", "metrics")
    assert (done.code, done.out) == (1, b"")
    assert "broker 1 has no HTTP port: set its option metrics.listener=HOST:PORT" in done.errors


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nonsense"], "`ottla broker metrics` shows all names"),
        (["-a", "nonsense"], "no metric matches"),
        (["--broker", "9"], "broker 9 is not running"),
        (["--broker", "x"], "'--broker'"),
        (["--http", "9308"], "--http '9308' is not of the form HOST:PORT"),
        (["--http", "h:1", "--broker", "1"], "either --broker or --http"),
    ],
)
def test_wrong_command_line_is_a_sentence(metrics: Any, words: list[str], sentence: str) -> None:
    """Nothing is printed on standard output."""
    done = metrics(*words)
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors


def test_port_without_beans_is_a_sentence(metrics: Any, served: Cluster) -> None:
    """The error has the port, and what to name instead."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        name = f"127.0.0.1:{probe.getsockname()[1]}"
    done = metrics("--http", name)
    assert (done.code, done.out) == (1, b"")
    assert f"nothing listens on {name}: name the HOST:PORT of a broker's option" in done.errors
    done = metrics("--http", served.bootstrap.split(",")[0])
    assert "does not serve beans over HTTP" in done.errors
