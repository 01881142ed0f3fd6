"""`ottla metrics …`: subscriptions to metrics of clients."""

from typing import Any

import pytest


def test_subscription_is_set_listed_changed_and_deleted(run: Any) -> None:
    """An option that is reset has its default; a subscription without options does not exist."""
    assert run("metrics", "list").errors.startswith("No subscriptions.")
    line = ("--metrics", "org.apache.kafka.producer.", "--metrics", "b.", "--interval", "30s")
    done = run("metrics", "set", "s", *line, "--match", "client_id=x.*")
    assert done.out == b"Changed the subscription s.\n"
    assert run("metrics", "list", "--output", "json").json == [
        {
            "name": "s",
            "metrics": ["org.apache.kafka.producer.", "b."],
            "interval_ms": 30_000,
            "match": ["client_id=x.*"],
        }
    ]
    done = run("metrics", "set", "s", "--metrics", "*", "--reset", "match", "--output", "json")
    assert done.json == {"name": "s", "set": {"metrics": "*"}, "reset": ["match"]}
    assert run("metrics", "list", "s").rows == [["s", "*", "30000", "-"]]
    run("metrics", "set", "t", "--interval", "1m")
    done = run("metrics", "delete", "s", "--yes", "--output", "json")
    assert done.json == {"deleted": ["s"]}
    assert [row["name"] for row in run("metrics", "list", "--output", "json").json] == ["t"]


@pytest.mark.parametrize(
    ("command_line", "sentence"),
    [
        (["set", "s"], "Give --metrics PREFIX, --interval DURATION, --match or --reset"),
        (["set", "s", "--interval", "soon"], "'soon' is not a duration"),
        (["set", "s", "--interval", "1ms"], "interval.ms"),
        (["set", "s", "--match", "client_id"], "not of the form name=value"),
        (["set", "s", "--match", "colour=red"], "colour"),
        (["set", "s", "--interval", "30s", "--reset", "interval"], "cannot be combined"),
        (["set", "s", "--reset", "name"], "'name' is not one of"),
        (["delete", "t", "none", "--yes"], "There is no subscription 'none'"),
        (["list", "none"], "There is no subscription 'none'"),
    ],
)
def test_wrong_subscription_changes_nothing(
    run: Any, command_line: list[str], sentence: str
) -> None:
    """The sentence names the option or the subscription."""
    run("metrics", "set", "t", "--interval", "30s")
    done = run("metrics", *command_line)
    assert done.code != 0
    assert done.out == b""
    assert sentence in done.errors
    assert [row["name"] for row in run("metrics", "list", "--output", "json").json] == ["t"]
