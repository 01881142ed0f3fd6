"""The exit code of commands that name a part which the cluster does not have."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    "command_line",
    [
        ["topic", "describe", "none"],
        ["topic", "search", "t", "--partition", "9"],
        ["topic", "trim", "t", "--to", "0", "--partition", "9"],
        ["consume", "t", "--partition", "9"],
        ["produce", "t", "--partition", "9"],
        ["group", "describe", "none"],
        ["metrics", "delete", "none", "--yes"],
        ["broker", "apis", "--broker", "9"],
        ["log", "dirs", "--broker", "9"],
        ["cluster", "move", "t", "--to", "9"],
        ["cluster", "elect", "t:9"],
        ["transaction", "describe", "none"],
    ],
    ids=" ".join,
)
def test_a_name_that_the_cluster_does_not_have_is_an_error_of_the_cluster(
    command_line: list[str], run: Any
) -> None:
    """The command line is right, so that no usage is shown, and the exit code is 1."""
    run("topic", "create", "t")
    done = run(*command_line)
    assert (done.code, done.out, "Usage:" in done.errors) == (1, b"", False)
    assert "none" in done.errors or "9" in done.errors
