"""The order of the files, and the groups that one process runs."""

from types import SimpleNamespace
from typing import Any

from tests.runs import scheduler

SECONDS = {
    "tests/spark/test_app.py": 60.0,
    "tests/spark/test_joins.py": 50.0,
    "tests/client/test_chaos.py": 100.0,
}


def _sorted(*nodeids: str) -> list[str]:
    items: list[Any] = [SimpleNamespace(nodeid=nodeid) for nodeid in nodeids]
    scheduler.longest_first(items, SECONDS)
    return [item.nodeid for item in items]


def test_the_longest_files_and_groups_come_first() -> None:
    """A group takes as long as all its files; a file without recorded duration comes last."""
    assert _sorted(
        "tests/unit/test_new.py::test_a",
        "tests/client/test_chaos.py::test_a",
        "tests/spark/test_joins.py::test_a",
        "tests/spark/test_app.py::test_a",
    ) == [
        "tests/spark/test_app.py::test_a",
        "tests/spark/test_joins.py::test_a",
        "tests/client/test_chaos.py::test_a",
        "tests/unit/test_new.py::test_a",
    ]


def test_tests_of_a_file_keep_their_order() -> None:
    """Fixtures of a module are made once."""
    names = [f"tests/client/test_chaos.py::test_{letter}" for letter in "zab"]
    assert _sorted(*names) == names


def test_one_process_runs_a_group() -> None:
    """Every file outside the groups is a scope of its own."""
    assert scheduler.scope_of("tests/spark/test_app.py::test_a") == "spark"
    assert scheduler.scope_of("tests/spark/test_killed.py::test_a") == "tests/spark/test_killed.py"
    assert scheduler.scope_of("tests/law/test_sizes.py::test_a") == "law"
    assert scheduler.scope_of("tests/robustness/test_stop.py::test_a") == "alone"
    assert scheduler.scope_of("tests/unit/x/test_a.py::test_a[a::b]") == "tests/unit/x/test_a.py"


def test_every_recorded_file_exists() -> None:
    """`python -m tests.durations --record-order` writes the file again."""
    root = scheduler.ORDER_FILE.parents[2]
    assert [file for file in scheduler.recorded_seconds() if not (root / file).is_file()] == []
