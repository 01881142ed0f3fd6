"""Tables, JSON, and a progress bar that is rarely seen."""

import json
import sys
from typing import Any

import pytest

from ottla.tools import output
from ottla.tools.output import Output, Progress, render_table

ROWS = [{"name": "a", "count": 1, "extra": "x"}, {"name": "long", "count": None, "extra": []}]


def test_a_table_is_aligned_under_its_titles() -> None:
    """Numbers stand to the right, what is missing is a dash."""
    assert render_table(ROWS, ("name", "count")) == "NAME  COUNT\na         1\nlong      -"


def test_lists_and_truth_values_are_readable() -> None:
    """They are written as configuration files write them."""
    table = render_table([{"isr": [1, 2], "internal": True}], ("isr", "internal"))
    assert table.splitlines()[1].split() == ["1,2", "true"]


def test_json_holds_everything_that_a_row_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns are for people only."""
    Output("json").rows(ROWS, ("name",))
    assert json.loads(capsys.readouterr().out) == ROWS


def test_nothing_to_show_is_said_beside_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output stays empty for scripts; JSON is an empty list."""
    Output("table").rows([], ("name",), empty="No topics.")
    assert capsys.readouterr() == ("", "No topics.\n")
    Output("json").rows([], ("name",), empty="No topics.")
    assert capsys.readouterr() == ("[]\n", "")


def test_a_long_result_is_printed_as_it_comes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One headline, and a line in JSON for each row."""
    monkeypatch.setattr(output, "_ROWS_AT_ONCE", 2)
    with Output("table").stream(("n",)) as rows:
        for number in range(5):
            rows.append({"n": number})
    assert capsys.readouterr().out.split() == ["N", "0", "1", "2", "3", "4"]
    with Output("json").stream(("n",)) as rows:
        rows.extend({"n": number} for number in range(3))
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["n"] for line in lines] == [0, 1, 2]


def test_what_was_done_is_a_sentence_or_facts(capsys: pytest.CaptureFixture[str]) -> None:
    """People read the one, scripts the other."""
    Output("table").done("Deleted a.", deleted=["a"])
    assert capsys.readouterr().out == "Deleted a.\n"
    Output("json").done("Deleted a.", deleted=["a"])
    assert json.loads(capsys.readouterr().out) == {"deleted": ["a"]}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that a progress bar sees."""
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    return now


def test_a_bar_appears_only_for_long_work_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Short work is over before anybody could read it."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress("Reading", 10) as progress:
        progress.advance(1)
        assert capsys.readouterr().err == ""
        clock[0] = 5.0
        progress.advance(1)
    assert "Reading" in capsys.readouterr().err


def test_no_bar_spoils_a_pipe(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where standard error is no terminal, nothing is written and rich is not imported."""
    imported: list[Any] = []
    monkeypatch.setattr(output.importlib, "import_module", imported.append)
    with Progress("Reading", 10) as progress:
        clock[0] = 5.0
        progress.advance(10)
    assert (capsys.readouterr().err, imported) == ("", [])
