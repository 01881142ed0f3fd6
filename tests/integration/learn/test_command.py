"""`ottla learn` runs lessons in a cluster and draws them."""

import io
import json

import pytest

from ottla.tools import main


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the terminal be English, and wide."""
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    monkeypatch.setenv("COLUMNS", "100")


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
