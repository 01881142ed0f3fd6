"""Tests that `make test` leaves out, each because another test fails for the same fault.

`@pytest.mark.nightly("tests/x/test_y.py::test_z")` names that test: with a parameter in brackets,
without it if any of its parameters serves, or by `[parameter]` alone if it is the same test.
"""

from collections.abc import Iterable

import pytest


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect nightly tests, unless `--nightly` is given.

    Raises pytest.UsageError if the test that a marker names is not one of `make test`.
    """
    nightly = {item.nodeid: item for item in items if item.get_closest_marker("nightly")}
    others = [item.nodeid for item in items if item.nodeid not in nightly]
    named = {nodeid: _named_by(item) for nodeid, item in nightly.items()}
    has_whole_files = not any("::" in argument for argument in config.args)
    if has_whole_files and (wrong := missing(named, others, [item.nodeid for item in items])):
        raise pytest.UsageError("\n".join(wrong))
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
        if name.partition("::")[0] in files and name not in known
    ]


def _named_by(item: pytest.Item) -> str:
    marker = item.get_closest_marker("nightly")
    assert marker is not None
    if len(marker.args) != 1:
        raise pytest.UsageError(f'{item.nodeid}: name one test: `nightly("tests/…::test_…")`')
    (name,) = marker.args
    return f"{item.nodeid.partition('[')[0]}{name}" if name.startswith("[") else str(name)
