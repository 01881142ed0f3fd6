"""`ottla learn`: the list, a drawn lesson in both languages, steps, JSON, unknown names."""

import io
import json

import pytest

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


def test_lesson_is_drawn_between_question_and_explanation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The question comes first, then logs with leader, ISR and high watermark, then the
    explanation.
    """
    assert main.run(["learn", "committed-offset"]) == 0
    out = capsys.readouterr().out
    positions = [
        out.index(text)
        for text in ("Question", "leader 1 (epoch 0)   ISR 1   HW 5", "LEO 5", "Explanation")
    ]
    assert positions == sorted(positions)
    assert "committed-offset: 3" not in out
    assert "committed: committed-offset-0: 3" in out


def test_owners_of_partitions_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """Before and after a member leaves, the terminal shows which member owns which partitions."""
    assert main.run(["learn", "rebalance"]) == 0
    lines = capsys.readouterr().out.splitlines()
    owners = [line.split(" → ") for line in lines if " → " in line]
    before, after = owners[:2], owners[2:]
    names = [f"rebalance-{number}" for number in range(3)]
    assert [member.strip() for member, _ in before] == ["c1", "c2"]
    assert sorted(key for _, keys in before for key in keys.split(", ")) == names
    assert after == [["    c1", ", ".join(names)]]


def test_language_is_that_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Chinese terminal has Chinese texts; --language overrides it."""
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert main.run(["learn", "acks-0"]) == 0
    assert "解释" in capsys.readouterr().out
    assert main.run(["learn", "acks-0", "--language", "en"]) == 0
    assert "Explanation" in capsys.readouterr().out


def test_step_waits_for_enter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--step reads a line after the question and after each step."""
    typed = io.StringIO("\n" * 10)
    monkeypatch.setattr("sys.stdin", typed)
    assert main.run(["learn", "acks-0", "--step"]) == 0
    assert typed.tell() == 3
    assert capsys.readouterr().out.count("➤") == 2


def test_step_asks_for_enter_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise a lesson that waits looks like one that hangs."""
    typed = io.StringIO("\n" * 10)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    assert main.run(["learn", "acks-0", "--step", "--language", "zh"]) == 0
    assert capsys.readouterr().err == "按回车键继续。\n" * 3


def test_json_has_events_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    """--output json is a list with the events and the facts of each lesson."""
    assert main.run(["learn", "grow-partitions", "order", "--output", "json"]) == 0
    grow, order = json.loads(capsys.readouterr().out)
    assert grow["facts"]["error"] == "INVALID_PARTITIONS"
    assert {event["kind"] for event in grow["events"]} == {"partition", "step"}
    assert order["name"] == "order"
    assert "{" not in order["explanation"]


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
