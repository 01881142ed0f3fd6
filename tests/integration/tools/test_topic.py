"""`ottla topic …` against a cluster."""

from dataclasses import replace
from typing import Any

import pytest

from ottla.client.admin import topics
from ottla.replication.partition import Partition
from ottla.testing import Cluster
from ottla.testing.process import run_command
from ottla.tools.topic import delete


def test_a_topic_is_created_shown_and_deleted(run: Any) -> None:
    """The table output follows a topic from its creation to its deletion."""
    output = run("topic", "create", "orders", "--partitions", "3")
    assert output.out == b"Created topic orders with 3 partitions, replication factor 1.\n"
    assert run("topic", "list").rows == [["orders", "3", "1"]]
    described = run("topic", "describe", "orders").rows
    assert [row[:3] for row in described] == [["orders", str(index), "1"] for index in range(3)]
    assert run("topic", "delete", "orders", "--yes").out == b"Deleted orders.\n"
    assert run("topic", "list").errors.startswith("No topics yet. Create one with")


def test_numbers_that_the_user_may_not_see_are_left_out(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker returns -1 without the right to describe the topic's configuration."""
    create_topic = topics.create_topic

    def create_blindly(*arguments: Any, **options: Any) -> topics.CreatedTopic:
        created = create_topic(*arguments, **options)
        return replace(created, partitions=-1, replication_factor=-1)

    monkeypatch.setattr(topics, "create_topic", create_blindly)
    assert run("topic", "create", "orders").out == b"Created topic orders.\n"
    facts = run("topic", "create", "others", "--output", "json").json
    assert (facts["partitions"], facts["replication_factor"]) == (None, None)


def test_output_json(run: Any) -> None:
    """JSON has the same facts and more."""
    assert run("topic", "create", "a", "--output", "json").json == {
        "name": "a",
        "created": True,
        "partitions": 1,
        "replication_factor": 1,
    }
    (row,) = run("topic", "list", "--output", "json").json
    assert (row["name"], row["partitions"], len(row["topic_id"])) == ("a", 1, 22)
    (row,) = run("topic", "describe", "a", "--output", "json").json
    assert (row["isr"], row["high_watermark"], row["leader_epoch"]) == ([1], 0, 0)


def test_an_end_that_the_leader_does_not_know_yet_is_left_empty(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader may be the only replica in sync for long: the rest of the description is shown."""
    run("topic", "create", "a")
    monkeypatch.setattr(Partition, "is_end_known", False)
    (row,) = run("topic", "describe", "a", "--output", "json").json
    assert (row["leader"], row["isr"], row["log_start_offset"]) == (1, [1], 0)
    assert (row["high_watermark"], row["records"]) == (None, None)


def test_existing_topic_is_an_error_by_default(run: Any) -> None:
    """With --if-not-exists a script can be repeated."""
    run("topic", "create", "a")
    again = run("topic", "create", "a")
    assert (again.code, again.out) == (1, b"")
    assert "already exists" in again.errors
    assert run("topic", "create", "a", "--if-not-exists").out == b"Topic a exists.\n"


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["create", "a/b"], "a/b"),
        (["create", "a", "-c", "retention.ms=x"], "retention.ms"),
        (["create", "a", "-c", "no.such.option=1"], "no.such.option"),
        (["create", "a", "--replication-factor", "2"], "eplication factor"),
        (["describe", "a"], "There is no topic 'a'"),
        (["delete", "a", "--yes"], "There is no topic 'a'"),
        (["config", "a"], "a"),
    ],
)
def test_errors_are_one_line(run: Any, command_line: list[str], sentence: str) -> None:
    """The exit code is 1, without standard output or a traceback."""
    done = run("topic", *command_line)
    assert (done.code, done.out) == (1, b"")
    assert sentence in done.errors
    assert done.errors.count("\n") == 1


def test_a_configuration_is_set_shown_and_unset(run: Any) -> None:
    """Only values that differ from the defaults are printed, unless all are requested."""
    run("topic", "create", "a", "-c", "retention.ms=1000")
    run("topic", "config", "a", "--set", "cleanup.policy=compact", "--set", "segment.ms=5000")
    assert [row[:2] for row in run("topic", "config", "a").rows] == [
        ["cleanup.policy", "compact"],
        ["retention.ms", "1000"],
        ["segment.ms", "5000"],
    ]
    run("topic", "config", "a", "--unset", "retention.ms", "--unset", "segment.ms")
    assert [row[0] for row in run("topic", "config", "a").rows] == ["cleanup.policy"]
    every = {row["name"]: row["value"] for row in run(
        "topic", "config", "a", "--all", "--output", "json").json}  # fmt: skip
    assert every["retention.ms"] == "604800000"


def test_deletion_of_a_topic_needs_confirmation_on_a_terminal(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal "n" keeps the topic; a script needs no confirmation."""
    run("topic", "create", "a")
    monkeypatch.setattr(delete, "is_terminal", lambda: True)
    refused = run("topic", "delete", "a", stdin=b"n\n")
    assert refused.code == 1
    assert "Delete a with all records?" in refused.errors
    assert run("topic", "delete", "a", stdin=b"y\n").code == 0


def test_misspelt_name_prevents_the_deletion(run: Any) -> None:
    """Either all topics are deleted or none."""
    run("topic", "create", "a")
    assert run("topic", "delete", "a", "b", "--yes").code == 1
    assert run("topic", "list").rows == [["a", "1", "1"]]


def test_a_shell_completes_the_names_of_topics(run: Any, ottla_cluster: Cluster) -> None:
    """The names come from the cluster of the command; without a cluster no names are offered."""
    run("topic", "create", "orders")
    run("topic", "create", "other")
    for bootstrap, names in ((ottla_cluster.bootstrap, ["orders", "other"]), ("127.0.0.1:1", [])):
        done = run_command(
            environment={
                "_OTTLA_COMPLETE": "bash_complete",
                "COMP_WORDS": "ottla topic describe o",
                "COMP_CWORD": "3",
                "OTTLA_BOOTSTRAP": bootstrap,
            }
        )
        assert [line.split(",")[1] for line in done.stdout.decode().split()] == names


def test_partitions_are_added(run: Any) -> None:
    """The total is named, so that a second run changes nothing."""
    run("topic", "create", "orders", "--partitions", "2")
    words = ("topic", "add-partitions", "orders", "--total", "5")
    checked = run(*words, "--dry-run")
    assert checked.out == b"Topic orders would have 5 partitions, now 2.\n"
    assert run("topic", "list").rows == [["orders", "2", "1"]]
    added = run(*words)
    assert added.out == b"Topic orders has 5 partitions, before 2.\n"
    assert "keys may go to other partitions" in added.errors
    assert run("topic", "list").rows == [["orders", "5", "1"]]
    again = run(*words)
    assert again.code == 1
    assert "topic 'orders' has 5 partitions: name a larger number" in again.errors


def test_partitions_of_a_missing_topic_are_not_added(run: Any) -> None:
    """The error names the topic."""
    result = run("topic", "add-partitions", "orders", "--total", "5")
    assert result.code == 1
    assert "There is no topic 'orders'" in result.errors
