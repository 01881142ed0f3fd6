"""A test that `make test` leaves out names another one that fails for the same fault."""

import pytest

from tests.runs import nightly

ALL = ["tests/a.py::test_one[x]", "tests/a.py::test_one[y]", "tests/a.py::test_two"]


def test_the_markers_of_this_run_name_tests_of_make_test(pytestconfig: pytest.Config) -> None:
    """In a whole run, the markers of all tests are checked."""
    assert pytestconfig.stash[nightly.WRONG] == []


def test_a_marker_without_a_name_is_reported() -> None:
    """The sentence has the name of the nightly test."""
    (sentence,) = nightly.missing({"tests/a.py::test_two": ""}, [], ALL)
    assert sentence.startswith("tests/a.py::test_two: its marker `nightly` names ''")


def test_a_marker_names_a_test_of_make_test() -> None:
    """With its parameter, or without it if any of its parameters serves."""
    for name in ("tests/a.py::test_one[x]", "tests/a.py::test_one"):
        named = {"tests/a.py::test_one[y]": name}
        assert nightly.missing(named, ["tests/a.py::test_one[x]"], ALL) == []


def test_a_marker_that_names_a_nightly_test_is_reported() -> None:
    """The sentence has both names."""
    named = {"tests/a.py::test_two": "tests/a.py::test_one"}
    (sentence,) = nightly.missing(named, [], ALL)
    assert sentence.startswith("tests/a.py::test_two: its marker `nightly` names")
    assert "'tests/a.py::test_one'" in sentence


def test_a_file_that_is_not_collected_is_not_checked() -> None:
    """A single file can be run by itself."""
    named = {"tests/a.py::test_two": "tests/b.py::test_three"}
    assert nightly.missing(named, [], ALL) == []
