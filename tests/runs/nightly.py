"""Tests that `make test` leaves out, each because another test fails for the same fault.

`@pytest.mark.nightly("tests/x/test_y.py::test_z")` names that test: with a parameter in brackets,
without it if any of its parameters serves, or by `[parameter]` alone if it is the same test.
"""

from collections.abc import Iterable

import pytest

# What is wrong with the markers of the collected tests: a test reports it.
WRONG = pytest.StashKey[list[str]]()


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect nightly tests, unless `--nightly` is given, and note wrong markers in the stash."""
    nightly = {item.nodeid: item for item in items if item.get_closest_marker("nightly")}
    others = [item.nodeid for item in items if item.nodeid not in nightly]
    named = {nodeid: _named_by(item) for nodeid, item in nightly.items()}
    # Single tests can be run by themselves.
    has_whole_files = not any("::" in argument for argument in config.args)
    config.stash[WRONG] = (
        missing(named, others, [item.nodeid for item in items]) if has_whole_files else []
    )
    if not config.getoption("nightly"):
        config.hook.pytest_deselected(items=list(nightly.values()))
        items[:] = [item for item in items if item.nodeid not in nightly]


def missing(named: dict[str, str], others: Iterable[str], collected: Iterable[str]) -> list[str]:
    """Return a sentence for each nightly test whose marker names no test of `make test`.

    A name in a file that is not collected is not checked.
    """
    known = set(others)
    known |= {nodeid.partition("[")[0] for nodeid in known}
    files = {nodeid.partition("::")[0] for nodeid in collected}
    return [
        f"{nodeid}: its marker `nightly` names '{name}', which is no test of `make test`"
        for nodeid, name in named.items()
        if name not in known and (not name or name.partition("::")[0] in files)
    ]


def _named_by(item: pytest.Item) -> str:
    marker = item.get_closest_marker("nightly")
    assert marker is not None
    name = str(marker.args[0]) if len(marker.args) == 1 else ""
    return f"{item.nodeid.partition('[')[0]}{name}" if name.startswith("[") else name
