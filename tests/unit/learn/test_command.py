"""`ottla learn` lists the lessons, and rejects unknown ones."""

import json

import pytest
from rich.cells import cell_len

from ottla.tools import main


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the terminal be English, and wide."""
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    monkeypatch.setenv("COLUMNS", "100")


def test_list_shows_names_and_questions(capsys: pytest.CaptureFixture[str]) -> None:
    """Without names, and with --list, every lesson is listed with its question."""
    assert main.run(["learn"]) == 0
    plain = capsys.readouterr().out
    assert main.run(["learn", "--list", "--output", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) >= 12
    assert all(row["name"] in plain and row["question"] in plain for row in rows)


def test_list_is_in_the_language_of_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A Chinese list has Chinese headings and a Chinese hint; its JSON has the same names."""
    assert main.run(["learn", "--language", "zh"]) == 0
    done = capsys.readouterr()
    assert done.out.splitlines()[0].split() == ["名称", "问题"]
    assert done.err == "用 `ottla learn 名称` 运行一个课程；--step 在每一步之后等待回车。\n"
    assert main.run(["learn", "--language", "zh", "--output", "json"]) == 0
    printed = capsys.readouterr().out
    assert {*json.loads(printed)[0]} == {"name", "subject", "question"}
    assert "\\u" not in printed


def test_columns_of_a_chinese_list_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    """A Chinese character takes two cells."""
    assert main.run(["learn", "--language", "zh"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    begin = cell_len(heading.partition("问题")[0])
    assert {cell_len(line.partition("  ")[0]) < begin for line in lines} == {True}
    assert all(line[begin - 1] == " " and line[begin] != " " for line in lines)


def test_all_with_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The name would have no effect."""
    assert main.run(["learn", "--all", "acks-1"]) == 2
    assert "--all runs every lesson: omit it" in capsys.readouterr().err


def test_name_in_capitals_has_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    """Names of lessons are in small letters."""
    assert main.run(["learn", "ACKS-1"]) == 1
    assert "did you mean 'acks-1'?" in capsys.readouterr().err


def test_unknown_lesson_is_an_error_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A misspelled name is refused with a suggestion, and no other lesson runs."""
    assert main.run(["learn", "order", "ack-1"]) == 1
    done = capsys.readouterr()
    assert done.out == ""
    assert "there is no lesson 'ack-1': did you mean 'acks-1'? `ottla learn --list`" in done.err


def test_completion_offers_lessons(capsys: pytest.CaptureFixture[str]) -> None:
    """The shell completes the names of lessons."""
    command = main.root.get_command(None, "learn")  # type: ignore[arg-type]
    assert command is not None
    (names, *_) = command.params
    with command.make_context("learn", []) as context:
        offered = [item.value for item in names.shell_complete(context, "acks-")]
    assert offered == ["acks-1", "acks-all", "acks-0", "acks-2", "acks-1-duplicates"]
