"""`ottla perf`: measurements and verifiable clients against a real broker, and workloads."""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin import offsets
from ottla.testing import Cluster
from ottla.tools.measuring import latencies, live
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

_WORKLOAD = """
duration = "20s"
[topics.orders]
[[produce]]
topic = "orders"
records = 20
[[consume]]
topic = "orders"
"""


def _end(cluster: Cluster, topic: str) -> int:
    with cluster.admin() as brokers:
        return offsets.list_offsets(brokers, {(topic, 0): offsets.LATEST})[topic, 0].offset


@pytest.fixture(name="orders")
def _orders(ottla_cluster: Cluster) -> Cluster:
    """Return a cluster with the topic `orders`, which has five records in one partition."""
    ottla_cluster.create_topic("orders", partitions=1)
    produce(ottla_cluster, "orders", [b"1", b"22", b"333", b"4", b"5"])
    return ottla_cluster


def test_produce_measures_rate_and_latency(run: Any, orders: Cluster) -> None:
    """The result has one row; the records of the warm-up are written, but not part of it."""
    words = ("perf", "produce", "orders", "--records", "20", "--warmup", "10", "--size", "9")
    done = run(*words, "--output", "json")
    assert done.code == 0, done.errors
    (row,) = done.json
    assert (row["topic"], row["records"]) == ("orders", 20)
    assert {"records_per_second", "mb_per_second", "average_ms", "p50", "p99.9"} < set(row)
    assert _end(orders, "orders") == 35
    (cells,) = run(*words).rows
    assert cells[:2] == ["orders", "20"]


def test_rate_of_the_producer_is_limited(run: Any, orders: Cluster) -> None:
    """`--rate 50` takes 20 ms a record."""
    done = run("perf", "produce", "orders", "--records", "10", "--rate", "50", "--output=json")
    assert 1 < done.json[0]["records_per_second"] < 60


def test_live_line_of_a_slow_producer_is_shown(
    run: Any, orders: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a rate, the line changes ten times a second, not after a thousand records."""
    monkeypatch.setattr(live, "_INTERVAL_S", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    done = run("perf", "produce", "orders", "--records", "20", "--rate", "100")
    assert [text.split()[0] for text in done.errors.split("\r\x1b[K") if text] == ["10", "20"]


def test_consume_reads_up_to_the_present_end(run: Any, orders: Cluster) -> None:
    """Without --records all records are read, from the position of --offset."""
    done = run("perf", "consume", "orders", "--output", "json")
    assert done.code == 0, done.errors
    (row,) = done.json
    assert (row["records"], row["mb"]) == (5, round(8 / 2**20, 3))
    assert {"seconds", "records_per_second", "mb_per_second", "rebalance_ms"} < set(row)
    assert run("perf", "consume", "orders", "-o", "-2").rows[0][:2] == ["orders", "2"]
    assert run("perf", "consume", "orders", "-o", "end").rows[0][:2] == ["orders", "0"]


def test_consume_reads_as_a_member_of_a_group(run: Any, orders: Cluster) -> None:
    """The rebalance is part of the result, and exactly the requested records are read."""
    words = ("perf", "consume", "orders", "--group", "g", "--records", "3", "--output", "json")
    (row,) = run(*words).json
    assert row["records"] == 3
    assert row["rebalance_ms"] > 0


def test_consume_fails_if_records_are_missing(run: Any, orders: Cluster) -> None:
    """After the timeout the result is printed, and the exit code is 1."""
    done = run("perf", "consume", "orders", "--records", "9", "--timeout", "0.3")
    assert (done.code, done.rows[0][1]) == (1, "5")
    assert "raise --timeout, or lower --records" in done.errors


def test_latency_is_measured_there_and_back(run: Any, orders: Cluster) -> None:
    """One record at a time is written and read."""
    words = ("perf", "latency", "orders", "--records", "4", "--size", "7")
    (row,) = run(*words, "--output", "json").json
    assert row["records"] == 4
    assert 0 < row["average_ms"] <= row["maximum_ms"]
    assert run(*words, "--acks", "1").rows[0][:2] == ["orders", "4"]
    assert _end(orders, "orders") == 13


@pytest.mark.parametrize(
    "words",
    [
        ("produce", "orders", "--records", "3"),
        ("consume", "orders"),
        ("latency", "orders", "--records", "3"),
    ],
)
def test_measurement_is_drawn(run: Any, orders: Cluster, tmp_path: Path, words: tuple[str]) -> None:
    """`--plot FILE` writes a picture; a folder that is missing is reported before the run."""
    path = tmp_path / "plot.svg"
    done = run("perf", *words, "--plot", str(path), "--output", "json")
    assert done.code == 0, done.errors
    assert ET.parse(path).getroot().tag.endswith("svg")
    end = _end(orders, "orders")
    done = run("perf", *words, "--plot", str(tmp_path / "missing" / "plot.svg"))
    assert (done.code, done.out) == (1, b"")
    assert "its folder does not exist" in done.errors
    assert _end(orders, "orders") == end


def test_numbers_are_written_and_counted(run: Any, orders: Cluster) -> None:
    """The table has the totals, and JSON has an event for each record."""
    words = ("perf", "verifiable-produce", "orders", "--records", "3", "--rate", "1000")
    assert run(*words).rows[0][:3] == ["orders", "3", "3"]
    done = run(*words, "--prefix", "7", "--keys", "2", "--output", "json")
    events = [json.loads(line) for line in done.out.splitlines()]
    sent = [row for row in events if row["name"] == "producer_send_success"]
    assert [(row["key"], row["value"]) for row in sent] == [("0", "7.0"), ("1", "7.1"), ("0", "7.2")]  # fmt: skip
    assert [row["offset"] for row in sent] == [8, 9, 10]
    assert (events[0]["name"], events[-1]["name"]) == ("startup_complete", "tool_data")
    assert (events[-1]["sent"], events[-1]["acked"]) == (3, 3)


def test_record_that_is_not_delivered_is_reported(run: Any, orders: Cluster) -> None:
    """Each value that failed is named, and the exit code is 1."""
    orders.create_topic("strict", config={"max.message.bytes": "40"})
    words = ("perf", "verifiable-produce", "strict", "--records", "1")
    done = run(*words)
    assert done.code == 1
    assert done.rows[0][:3] == ["strict", "1", "0"]
    assert "Value 0 was not delivered: " in done.errors
    events = [json.loads(line) for line in run(*words, "--output", "json").out.splitlines()]
    assert "producer_send_error" in {row["name"] for row in events}


@pytest.mark.parametrize("extra", [[], ["--output", "json"]])
def test_option_that_the_client_refuses_is_the_only_output(
    run: Any, orders: Cluster, extra: list[str]
) -> None:
    """There are no totals of a run that did not begin."""
    done = run("perf", "verifiable-produce", "orders", "-X", "a=b", "--records", "1", *extra)
    assert (done.code, done.out) == (1, b"")
    assert done.errors.count("\n") == 1
    assert 'No such configuration property: "a"' in done.errors


def test_records_are_read_and_committed(run: Any, orders: Cluster) -> None:
    """The table has the records of each partition; a second run continues behind them."""
    words = ("perf", "verifiable-consume", "orders", "--group", "g")
    assert run(*words, "--records", "2").rows == [["orders", "0", "2", "0", "1"]]
    done = run(*words, "--records", "3", "--each", "--output", "json")
    events = [json.loads(line) for line in done.out.splitlines()]
    read = [(row["offset"], row["value"]) for row in events if row["name"] == "record_data"]
    assert read == [(2, "333"), (3, "4"), (4, "5")]
    names = {row["name"] for row in events}
    assert {"partitions_assigned", "records_consumed", "offsets_committed", "shutdown_complete"} < names  # fmt: skip


def test_each_record_is_a_line_of_text(run: Any, orders: Cluster) -> None:
    """`--each` prints partition, offset and value above the table."""
    words = ("perf", "verifiable-consume", "orders", "-G", "g", "--records", "1", "--each")
    assert run(*words).out.startswith(b"orders-0 0: 1\nTOPIC ")


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize(
    "words",
    [
        ("produce", "orders", "--records", "3"),
        ("consume", "orders"),
        ("latency", "orders", "--records", "3"),
        ("verifiable-produce", "orders", "--records", "3"),
        ("verifiable-consume", "orders", "--group", "g", "--records", "5"),
    ],
)
def test_live_line_is_for_terminals(
    run: Any, orders: Cluster, monkeypatch: pytest.MonkeyPatch, words: tuple[str], is_terminal: bool
) -> None:
    """Standard error has records and rate while the verb runs, and nothing without a terminal."""
    monkeypatch.setattr(live, "_INTERVAL_S", 0.0)
    monkeypatch.setattr(latencies, "_LIVE_EVERY", 1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    done = run("perf", *words)
    assert done.code == 0
    assert ("records/sec" in done.errors) == is_terminal
    assert done.errors.endswith("\r\x1b[K" if is_terminal else "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("produce", "orders", "--records", "0"), "'--records'"),
        (("produce", "orders", "--rate", "0"), "'--rate'"),
        (("produce", "orders", "-X", "linger"), "is not of the form name=value"),
        (("produce", "orders", "-X", "no.such=1"), "no.such"),
        (("consume", "nowhere"), "`ottla topic list` lists the topics"),
        (("consume", "orders", "-o", "soon"), "'soon' is not a position"),
        (("consume", "orders", "-o", "stored"), "name it with --group"),
        (("consume", "orders", "-G", "g", "-o", "1"), "`ottla group reset`"),
        (("consume", "orders", "-G", "g"), "--group needs --records"),
        (("latency", "nowhere"), "`ottla topic list` lists the topics"),
        (("latency", "orders", "--acks", "0"), "'--acks'"),
        (("verifiable-produce", "orders", "--keys", "x"), "'--keys'"),
        (("verifiable-consume", "orders"), "'--group'"),
        (("verifiable-consume", "nowhere", "-G", "g"), "`ottla topic list` lists the topics"),
        (("workload", "missing.toml"), "'missing.toml' does not exist"),
    ],
)
def test_wrong_command_line_is_a_sentence(
    run: Any, orders: Cluster, words: tuple[str], sentence: str
) -> None:
    """Nothing is written or read, and the exit code is not 0."""
    done = run("perf", *words)
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors
    assert "Traceback" not in done.errors
    assert _end(orders, "orders") == 5


def test_workload_is_run_and_checked(run: Any, tmp_path: Path) -> None:
    """The tables have producers and consumers; --check only reads the file."""
    path = tmp_path / "workload.toml"
    path.write_text(_WORKLOAD)
    assert run("perf", "workload", str(path), "--check").out.endswith(b": no problems found.\n")
    facts = run("perf", "workload", str(path), "--check", "--output", "json").json
    assert facts == {"file": str(path), "problems": []}
    done = run("perf", "workload", str(path), "--output", "json")
    assert done.code == 0, done.errors
    assert (done.json["produce"][0]["acknowledged"], done.json["consume"][0]["missing"]) == (20, 0)
    lines = run("perf", "workload", str(path)).out.decode().splitlines()
    assert [line.split()[:2] for line in (lines[1], lines[3])] == [["orders", "20"]] * 2


def test_wrong_workload_is_a_sentence(run: Any, tmp_path: Path) -> None:
    """The error names the table and the key."""
    path = tmp_path / "workload.toml"
    path.write_text(_WORKLOAD.replace("records = 20", "records = 0"))
    done = run("perf", "workload", str(path))
    assert (done.code, done.out) == (1, b"")
    assert "[[produce]]: records must be an integer of at least 1" in done.errors


def test_lost_records_are_a_failure(run: Any, tmp_path: Path) -> None:
    """A workload whose time is over says so, and the exit code is 1."""
    path = tmp_path / "workload.toml"
    path.write_text(_WORKLOAD.replace('"20s"', '"1ms"').replace("records = 20", "records = 100000"))
    done = run("perf", "workload", str(path))
    assert done.code == 1
    assert "the time is over after" in done.errors
