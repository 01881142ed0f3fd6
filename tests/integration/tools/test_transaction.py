"""`ottla transaction …`: a transaction that its coordinator knows, and one that hangs."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.admin.transactions import describe_producers
from ottla.cluster.options.authorization_options import AUTHORIZER
from ottla.testing import Cluster
from tests.compat.scripts.actions import perform


@pytest.fixture(name="cluster")
def _cluster(run: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Yield a cluster with the open transaction `mine` in topic `a`, and one that hangs in `b`."""
    options = {
        # A broker that verifies partitions accepts no transaction without its coordinator.
        "transaction.partition.verification.enable": "false",
        "transaction.state.log.num.partitions": "1",
        # Only an authorizer knows an administrator, who may write markers.
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }
    with Cluster(options=options) as cluster:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        cluster.create_topic("a", partitions=1)
        cluster.create_topic("b", partitions=2)
        perform("open-transaction mine a", cluster.bootstrap, "")
        perform("hanging-transaction other b", cluster.bootstrap, "")
        yield cluster


def _open(cluster: Cluster, topic: str) -> list[int]:
    with cluster.admin() as brokers:
        return [
            row.transaction_start_offset
            for row in describe_producers(brokers, topic, 0)
            if row.transaction_start_offset >= 0
        ]


def test_transactional_ids_are_listed(run: Any, cluster: Cluster) -> None:
    """A pattern and an age select some of them."""
    listed = run("transaction", "list", "--output", "json").json
    assert [(row["transactional_id"], row["coordinator"], row["state"]) for row in listed] == [
        ("mine", 1, "Ongoing"),
        ("other", 1, "Empty"),
    ]
    assert [row[0] for row in run("transaction", "list", "--pattern", "mi.*").rows] == ["mine"]
    old = run("transaction", "list", "--open-for", "1h", "--output", "json").json
    assert [row["transactional_id"] for row in old] == ["other"]
    assert run("transaction", "list", "--pattern", "none").errors == "No transactional ids.\n"


def test_transactions_are_described(run: Any, cluster: Cluster) -> None:
    """An open transaction has a start and partitions, another has neither."""
    mine, other = run("transaction", "describe", "mine", "other", "--output", "json").json
    assert (mine["state"], mine["coordinator"], mine["timeout_ms"]) == ("Ongoing", 1, 60_000)
    assert (mine["partitions"], mine["duration_ms"] >= 0) == (["a-0"], True)
    assert (other["partitions"], other["start"], other["duration_ms"]) == ([], "", None)
    row = run("transaction", "describe", "other").rows[0]
    assert (row[0], row[-3:]) == ("other", ["-", "-", "-"])


def test_producers_of_partitions_are_listed(run: Any, cluster: Cluster) -> None:
    """Each producer has its epoch, its last sequence, and the start of its open transaction."""
    rows = run("transaction", "producers", "a", "b", "--output", "json").json
    assert [(row["topic"], row["partition"], row["last_sequence"]) for row in rows] == [
        ("a", 0, 0),
        ("b", 0, 0),
    ]
    assert [row["transaction_start_offset"] for row in rows] == [0, 0]
    done = run("transaction", "producers", "b:1", "--broker", "1")
    assert (done.code, done.errors) == (0, "These partitions have no idempotent producers.\n")


def test_transaction_that_hangs_is_found_and_aborted(run: Any, cluster: Cluster) -> None:
    """A dry run aborts nothing; a transaction that the coordinator knows does not hang."""
    (row,) = run("transaction", "hanging", "--output", "json").json
    assert (row["topic"], row["partition"], row["start_offset"]) == ("b", 0, 0)
    assert run("transaction", "hanging", "b:0", "--broker", "1").rows[0][:2] == ["b", "0"]
    for line in (["a"], ["b:1"], ["b", "--older-than", "99999d"]):
        assert run("transaction", "hanging", *line).errors == "No transaction hangs.\n"
    abort = ("transaction", "abort", "--partition", "b:0", "--start-offset", "0")
    dry = run(*abort, "--dry-run", "--output", "json").json
    assert (dry["producer_id"], dry["executed"]) == (row["producer_id"], False)
    assert _open(cluster, "b") == [0]
    done = run(*abort, "--yes")
    assert done.out.startswith(b"Aborted the transaction of producer")
    assert _open(cluster, "b") == []


def test_marker_needs_an_authorizer(run: Any) -> None:
    """Without one, brokers know no administrator: the error has the option to set."""
    with Cluster(options={"transaction.partition.verification.enable": "false"}) as cluster:
        cluster.create_topic("b", partitions=1)
        perform("hanging-transaction other b", cluster.bootstrap, "")
        abort = ("transaction", "abort", "--partition", "b:0", "--start-offset", "0", "--yes")
        done = run(*abort, "--bootstrap", cluster.bootstrap)
        assert done.code != 0
        assert "denied the operation Alter" in done.errors
        assert "set authorizer.class.name" in done.errors
        assert _open(cluster, "b") == [0]


def test_transaction_of_an_id_is_aborted(run: Any, cluster: Cluster) -> None:
    """The producer is fenced, and the partition has no open transaction any more."""
    dry = run("transaction", "abort", "mine", "--dry-run")
    assert dry.out.startswith(b"Dry run: would fence the producer of mine")
    assert _open(cluster, "a") == [0]
    done = run("transaction", "abort", "mine", "--yes", "--output", "json")
    assert done.json == {"transactional_id": "mine", "state": "Ongoing", "executed": True}
    for _ in range(2000):
        if not _open(cluster, "a"):
            break
    assert _open(cluster, "a") == []
    assert run("transaction", "describe", "mine", "--output", "json").json[0]["partitions"] == []


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["describe", "none"], "`ottla transaction list` lists the ids"),
        (["abort", "none", "--yes"], "Transactional id 'none'"),
        (["abort"], "Give a transactional id, or both --partition and --start-offset"),
        (["abort", "mine", "--start-offset", "0"], "Give a transactional id, or both"),
        (["abort", "--partition", "b:0"], "Give a transactional id, or both"),
        (["abort", "--partition", "b", "--start-offset", "0"], "name one partition, as in orders:0"),
        (["abort", "--partition", "b:0,1", "--start-offset", "0"], "name one partition"),
        (["abort", "--partition", "b:7", "--start-offset", "0"], "has no partition 7"),
        (["abort", "--partition", "b:0", "--start-offset", "5"], "no open transaction starts at offset 5"),
        (["abort", "--partition", "a:0", "--start-offset", "0"], "abort it with `ottla transaction abort mine`"),
        (["producers", "none"], "There is no topic 'none'"),
        (["producers", "a", "--broker", "7"], "Broker 7 is not running"),
        (["hanging", "none"], "There is no topic 'none'"),
        (["hanging", "--older-than", "long"], "'long' is not a duration"),
        (["list", "--open-for", "long"], "'long' is not a duration"),
        (["list", "--pattern", "("], "--pattern (: write a regular expression of RE2"),
    ],
)  # fmt: skip
def test_wrong_transaction_is_a_sentence(
    run: Any, cluster: Cluster, command_line: list[str], sentence: str
) -> None:
    """Nothing is aborted."""
    done = run("transaction", *command_line)
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors
    assert "Traceback" not in done.errors
    assert (_open(cluster, "a"), _open(cluster, "b")) == ([0], [0])
