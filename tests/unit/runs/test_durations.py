"""Durations of a run: sums, tables, comparison and budgets."""

from pathlib import Path

import pytest

from tests import durations
from tests.durations import Cost, Durations
from tests.runs.processor_time import REFERENCE_LOOP_SECONDS

RUN = Durations(
    wall_seconds=100.0,
    processor_seconds=130.0,
    tests={
        "tests/spark/test_app.py::test_one": Cost(1, 20.0, 15.0),
        "tests/spark/test_app.py::test_two[a::b]": Cost(1, 5.0, 4.0),
        "tests/unit/storage/log/test_log.py::test_append": Cost(1, 1.0, 0.5),
    },
)


def test_tests_are_summed_by_file_and_folder() -> None:
    """Folders below `unit` and `integration` are counted each for itself, the slowest first."""
    assert RUN.by_file()["tests/spark/test_app.py"] == Cost(2, 25.0, 19.0)
    assert list(RUN.by_folder().items()) == [
        ("spark", Cost(2, 25.0, 19.0)),
        ("unit/storage", Cost(1, 1.0, 0.5)),
    ]


@pytest.mark.parametrize(
    ("nodeid", "folder"),
    [
        ("tests/unit/tools/topic/test_create.py::test_x", "unit/tools"),
        ("tests/integration/tools/test_create.py::test_x", "integration/tools"),
        ("tests/compat/scripts/test_replay.py::test_x[a/b]", "compat"),
        ("tests/test_x.py::test_x", "."),
    ],
)
def test_folder_of_a_test(nodeid: str, folder: str) -> None:
    """A folder is the first one below `tests`; `unit` and `integration` are divided once more."""
    assert durations.folder_of(nodeid) == folder


def test_a_run_is_read_as_it_was_saved(tmp_path: Path) -> None:
    """The file has the time of the whole run and of each test."""
    RUN.save(tmp_path / "durations.json")
    assert durations.load(tmp_path / "durations.json") == RUN


def test_a_file_without_durations_is_refused(tmp_path: Path) -> None:
    """The sentence names the file."""
    path = tmp_path / "other.json"
    path.write_text("{}")
    with pytest.raises(SystemExit, match=r"cannot read durations from '.*other\.json'"):
        durations.load(path)


def test_the_table_has_folders_and_the_slowest_tests() -> None:
    """Both start with the slowest; the sum of the tests is a row of its own."""
    lines = durations.table_of(RUN)
    assert lines[1].split() == ["25.0", "19.0", "2", "spark"]
    assert lines[3].split() == ["26.0", "19.5", "3", "sum", "of", "the", "tests"]
    assert lines[-3].split() == ["20.0", "15.0", "tests/spark/test_app.py::test_one"]


def test_the_comparison_starts_with_the_largest_change() -> None:
    """A test that one of the runs lacks has taken no time there."""
    new = Durations(50.0, 60.0, tests={"tests/spark/test_app.py::test_one": Cost(1, 2.0, 1.0)})
    lines = durations.comparison(RUN, new)
    assert lines[0].startswith("wall time 1 min 40 s -> 0 min 50 s")
    assert lines[3].split() == ["25.0", "->", "2.0", "19.0", "->", "1.0", "spark"]
    first_test = lines.index(next(line for line in lines if line.endswith("test_one")))
    assert lines[first_test].split()[:3] == ["20.0", "->", "2.0"]


def test_a_folder_may_exceed_its_budget_by_a_quarter() -> None:
    """Beyond that, the sentence names the folder, its time, its budget and the file."""
    folders = {"spark": Cost(1, 0.0, 125.0), "sim": Cost(1, 0.0, 126.0)}
    budgets = {"spark": 100.0, "sim": 100.0}
    (sentence,) = durations.over_budget(folders, budgets, REFERENCE_LOOP_SECONDS)
    assert sentence.startswith("'sim' took 126 processor seconds, and its budget is 100")
    assert "budgets.toml" in sentence


def test_a_slow_machine_has_a_larger_budget() -> None:
    """The time of a fixed loop says how slow it is."""
    folders = {"spark": Cost(1, 0.0, 240.0)}
    budgets = {"spark": 100.0}
    assert not durations.over_budget(folders, budgets, 2 * REFERENCE_LOOP_SECONDS)
    assert durations.over_budget(folders, budgets, REFERENCE_LOOP_SECONDS)


def test_a_folder_without_a_budget_is_reported() -> None:
    """The sentence says which line to add."""
    (sentence,) = durations.over_budget({"new": Cost(1, 0.0, 7.0)}, {}, REFERENCE_LOOP_SECONDS)
    assert "'new' has no budget: add its 7 processor seconds" in sentence


def test_every_folder_of_the_tests_has_a_budget() -> None:
    """A budget of a folder that no longer exists is removed."""
    files = Path(durations.__file__).parent.rglob("test_*.py")
    root = Path(durations.__file__).parents[1]
    folders = {durations.folder_of(str(path.relative_to(root))) for path in files}
    assert set(durations.budgets()) == folders
