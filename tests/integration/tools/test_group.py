"""`ottla group …` against a cluster."""

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from ottla.testing import Cluster
from ottla.tools.group import delete

pytestmark = pytest.mark.slow


@pytest.fixture
def group(run: Any) -> str:
    """Return a group without members that has committed 4 of 6 records of one partition."""
    run("produce", "t", "-D", ",", stdin=b"0,1,2,3,4,5")
    run("consume", "t", "--group", "readers", "-c", "4")
    return "readers"


@pytest.fixture
def member(group: str, ottla_cluster: Cluster) -> Iterator[str]:
    """Yield the name of a consumer that is a member of the group."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": ottla_cluster.bootstrap, "group.id": group, "client.id": "somebody"}
    )
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(0.05)
    yield "somebody"
    consumer.close()


def test_groups_are_listed_with_their_state(run: Any, group: str) -> None:
    """A group without members is listed as empty."""
    assert run("group", "list").rows == [[group, "Empty", "consumer"]]
    assert run("group", "list", "--state", "Stable").out == b""


def test_lag_is_the_difference_to_the_end(run: Any, group: str) -> None:
    """The output has the committed offset, the end offset and the difference."""
    (row,) = run("group", "describe", group).rows
    assert row[:6] == [group, "t", "0", "4", "6", "2"]


def test_members_are_shown_with_their_partitions(run: Any, group: str, member: str) -> None:
    """They are in the table of offsets, and in a table of their own."""
    (row,) = run("group", "describe", group, "--output", "json").json
    assert (row["state"], row["client_id"], row["host"]) == ("Stable", member, "127.0.0.1")
    (row,) = run("group", "describe", group, "--members", "--output", "json").json
    assert (row["client_id"], row["partitions"]) == (member, ["t-0"])


@pytest.mark.parametrize(
    ("command_line", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 6),
        (["--to-offset", "3"], 3),
        (["--shift-by", "-1"], 3),
        (["--shift-by", "99"], 6),
        (["--to-datetime", "2020-01-01"], 0),
        (["--by-duration", "1h"], 0),
        (["--to", "start"], 0),
        (["--to", "end"], 6),
        (["--to", "3"], 3),
        (["--to", "-1"], 5),
        (["--to", "+2"], 2),
        (["--to", "@-1h"], 0),
        (["--to-earliest", "--topic", "t"], 0),
        (["--to-earliest", "--topic", "t:0"], 0),
    ],
)
def test_reset_is_a_dry_run_without_execute(
    run: Any, group: str, command_line: list[str], offset: int
) -> None:
    """The dry run has the same output as the execution, which alone changes the offsets."""
    output = run("group", "reset", group, *command_line)
    assert output.rows == [["t", "0", "4", str(offset)]]
    assert "add --execute" in output.errors
    assert run("group", "describe", group).rows[0][3] == "4"
    done = run("group", "reset", group, *command_line, "--execute")
    assert done.rows == output.rows
    is_past = command_line == ["--shift-by", "99"]
    assert done.errors == ("t-0: offset 103 is past its end; using 6.\n" if is_past else "")
    assert run("group", "describe", group).rows[0][3] == str(offset)


def test_a_reset_shows_the_partitions_that_it_leaves_alone(run: Any, group: str) -> None:
    """A partition without a commit has the lag from its beginning; with its topic it is reset."""
    run("topic", "add-partitions", "t", "--total", "2")
    run("produce", "t", "-p", "1", "-D", ",", stdin=b"0,1,2")
    done = run("group", "reset", group, "--to-latest", "--execute", "--output", "json")
    facts = ("partition", "current_offset", "new_offset", "lag", "new_lag")
    assert [[row[name] for name in facts] for row in done.json] == [
        [0, 4, 6, 2, 0],
        [1, None, None, 3, 3],
    ]
    assert done.errors == ""
    done = run("group", "reset", group, "--to-latest", "--topic", "t", "--output", "json")
    assert [row["new_lag"] for row in done.json] == [0, 0]


def test_offsets_can_be_set_before_the_group_exists(run: Any, group: str) -> None:
    """Its first consumer starts at the committed offsets."""
    run("group", "reset", "new", "--topic", "t", "--to-offset", "5", "--execute")
    assert run("consume", "t", "--group", "new", "-e").out == b"5\n"


def test_active_group_is_neither_reset_nor_deleted(run: Any, group: str, member: str) -> None:
    """The members would overwrite the change; the error says what to do first."""
    for arguments in (["reset", group, "--to-earliest", "--execute"], ["delete", group, "--yes"]):
        done = run("group", *arguments)
        assert (done.code, "stop its consumers first" in done.errors) == (1, True)


def test_a_group_is_deleted_with_its_offsets(run: Any, group: str) -> None:
    """The group is unknown afterwards."""
    assert run("group", "delete", group, "--yes").out == b"Deleted readers.\n"
    gone = run("group", "describe", group)
    assert (gone.code, gone.errors) == (
        1,
        "ottla: There is no group 'readers': `ottla group list` lists the groups\n",
    )


def test_deletion_of_a_group_needs_confirmation_on_a_terminal(
    run: Any, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal the command asks for a confirmation; in a script it does not."""
    monkeypatch.setattr(delete, "is_terminal", lambda: True)
    assert run("group", "delete", group, stdin=b"n\n").code == 1
    assert run("group", "list").rows != []


def test_reset_without_offsets_needs_a_topic(run: Any) -> None:
    """Without committed offsets no offset can be moved."""
    done = run("group", "reset", "nobody", "--to-latest")
    assert (done.code, "--topic TOPIC" in done.errors) == (2, True)


def test_unknown_partition_is_rejected(run: Any, group: str) -> None:
    """The command fails before any change."""
    done = run("group", "reset", group, "--topic", "t:7", "--to-latest", "--execute")
    assert (done.code, "Topic 't' has no partition 7" in done.errors) == (1, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--to", "nowhere"], "is not a position"),
        (["--to", "stored"], "where the group is already"),
        (["--to", "end", "--to-latest"], "exactly one of --to-earliest, --to-latest, --to, "),
        ([], "exactly one of --to-earliest, --to-latest, --to, "),
    ],
)
def test_reset_needs_one_position(run: Any, group: str, words: list[str], sentence: str) -> None:
    """Anything else is an error of the command line, and the offsets stay."""
    done = run("group", "reset", group, *words, "--execute")
    assert done.code == 2
    assert sentence in done.errors
    assert run("group", "describe", group).rows[0][3] == "4"
