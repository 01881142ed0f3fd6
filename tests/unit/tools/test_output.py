"""Tables, JSON, and a progress bar."""

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.tools import output
from ottla.tools.output import Output, ProgressBar, count_text, render_table

ROWS = [{"name": "a", "count": 1, "extra": "x"}, {"name": "long", "count": None, "extra": []}]


def test_a_table_is_aligned_under_its_titles() -> None:
    """Numbers are aligned to the right, and a missing value is a dash."""
    assert render_table(ROWS, ("name", "count")) == "NAME  COUNT\na         1\nlong      -"


def test_lists_and_booleans_are_readable() -> None:
    """Both are printed as in configuration files."""
    table = render_table([{"isr": [1, 2], "internal": True}], ("isr", "internal"))
    assert table.splitlines()[1].split() == ["1,2", "true"]


def test_json_has_all_fields_of_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    """The choice of columns applies to tables only."""
    Output("json").rows(ROWS, ("name",))
    assert json.loads(capsys.readouterr().out) == ROWS


def test_empty_result_is_reported_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output has no text for scripts; in JSON it is an empty list."""
    Output("table").rows([], ("name",), empty="No topics.")
    assert capsys.readouterr() == ("", "No topics.\n")
    Output("json").rows([], ("name",), empty="No topics.")
    assert capsys.readouterr() == ("[]\n", "")


def test_long_result_is_streamed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has one header, and JSON has one line for each row."""
    monkeypatch.setattr(output, "_ROWS_AT_ONCE", 2)
    with Output("table").stream(("n",)) as rows:
        for number in range(5):
            rows.append({"n": number})
    assert capsys.readouterr().out.split() == ["N", "0", "1", "2", "3", "4"]
    with Output("json").stream(("n",)) as rows:
        rows.extend({"n": number} for number in range(3))
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["n"] for line in lines] == [0, 1, 2]


def test_result_is_a_sentence_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A result is a sentence in text output, and an object in JSON."""
    Output("table").done("Deleted a.", deleted=["a"])
    assert capsys.readouterr().out == "Deleted a.\n"
    Output("json").done("Deleted a.", deleted=["a"])
    assert json.loads(capsys.readouterr().out) == {"deleted": ["a"]}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the clock that the progress bar uses."""
    now = [0.0]
    monkeypatch.setattr(output, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_bar_appears_only_for_long_work_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Short work is finished before a bar could be read."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with ProgressBar("Reading", 10) as progress:
        progress.advance(1)
        assert capsys.readouterr().err == ""
        clock[0] = 5.0
        progress.advance(1)
    assert "Reading" in capsys.readouterr().err


def test_no_bar_is_written_to_a_pipe(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If standard error is no terminal, nothing is written and rich is not imported."""
    imported: list[Any] = []
    monkeypatch.setattr(importlib, "import_module", imported.append)
    with ProgressBar("Reading", 10) as progress:
        clock[0] = 5.0
        progress.advance(10)
    assert (capsys.readouterr().err, imported) == ("", [])


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 matches"), (1, "1 match"), (2, "2 matches"), (1000, "1000 matches")]
)
def test_numbers_agree_with_their_nouns(count: int, text: str) -> None:
    """One match, but no or two matches."""
    assert count_text(count, "match", "matches") == text
    assert count_text(count, "topic").endswith("topic") == (count == 1)


@pytest.mark.parametrize(
    ("variables", "is_styled"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colours_of_a_terminal_can_be_refused(
    variables: dict[str, str],
    is_styled: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """NO_COLOR, if it is not empty, and TERM=dumb remove all styles (no-color.org)."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    row = {"state": "fail", "check": "port", "found": "closed", "remedy": "Open it."}
    Output().findings([row])
    findings = capsys.readouterr().out
    table = render_table(ROWS, ("name",))
    assert ("\x1b[" in findings, "\x1b[" in table) == (is_styled, is_styled)


def _on_terminal(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    Output().rows(rows, columns)
    return capsys.readouterr().out.splitlines()


_PARTITION = {"topic": "t", "log_start_offset": 5, "owner": "client-1", "isr": [1, 2, 3]}


def test_headings_have_several_lines_if_a_table_is_too_wide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal would break the lines of a wider table anywhere."""
    columns = ("topic", "log_start_offset", "owner")
    assert _on_terminal([_PARTITION], columns, 40, monkeypatch, capsys) == [
        "TOPIC  LOG-START-OFFSET  OWNER",
        "t                     5  client-1",
    ]
    assert _on_terminal([_PARTITION], columns, 25, monkeypatch, capsys) == [
        "         LOG-",
        "       START-",
        "TOPIC  OFFSET  OWNER",
        "t           5  client-1",
    ]


def test_last_columns_are_below_each_row_if_a_table_is_too_wide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their values have names; empty ones are omitted, and long lists are broken at a comma."""
    columns = ("topic", "log_start_offset", "owner", "isr")
    rows = [_PARTITION, {**_PARTITION, "owner": None}]
    assert _on_terminal(rows, columns, 18, monkeypatch, capsys) == [
        "         LOG-",
        "       START-",
        "TOPIC  OFFSET",
        "t           5",
        "    owner=client-1",
        "    isr=1,2,3",
        "t           5",
        "    isr=1,2,3",
    ]
    assert _on_terminal(rows[1:], columns, 12, monkeypatch, capsys)[-2:] == [
        "    isr=1,2,",
        "    3",
    ]


def test_output_that_is_no_terminal_is_never_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs read one line for each row."""
    monkeypatch.setenv("COLUMNS", "10")
    Output().rows([_PARTITION], tuple(_PARTITION))
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_json_may_have_characters_beyond_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    """Texts are readable; names of clients are escaped, which may not be valid Unicode."""
    Output("json").rows([{"question": "为什么"}], (), is_ascii=False)
    Output("json").rows([{"name": "\udcff"}], ())
    printed = capsys.readouterr().out
    assert '"为什么"' in printed
    assert '"\\udcff"' in printed
