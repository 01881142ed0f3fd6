"""Predictions: a terminal asks before the decisive step, and says which answers are wrong."""

import io
from pathlib import Path

import pytest

from ottla.learn import progress, showing
from ottla.learn.course import LESSONS
from ottla.learn.events import LANGUAGES, Text
from ottla.learn.predictions.catalogue import PREDICTIONS
from ottla.learn.predictions.prediction import Number, Prediction
from ottla.tools import main


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("OTTLA_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(showing, "is_interactive", lambda: True)


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let a person type lines."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_wrong_prediction_is_corrected_after_the_experiment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The question comes before the step that shows the result; each wrong answer has a reason."""
    typed(monkeypatch, "x\nb\n")
    assert main.run(["learn", "grow-partitions"]) == 0
    out = capsys.readouterr().out
    parts = ["What happens to the records", "Type one of a, b, c.", "➤", "prediction is right"]
    positions = [out.index(part) for part in parts]
    assert positions == sorted(positions)
    assert "Not “each key keeps its partition”: The partition is the hash modulo" in out


def test_number_is_compared_with_the_fact(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The committed offset is the next one, not the last."""
    typed(monkeypatch, "two\n2\n")
    assert main.run(["learn", "committed-offset"]) == 0
    out = capsys.readouterr().out
    assert "Type a number." in out
    assert "You predicted: 2. It is: 3." in out


def test_enter_skips_the_prediction(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result is shown all the same."""
    typed(monkeypatch, "\n")
    assert main.run(["learn", "committed-offset"]) == 0
    assert "It is: 3." in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--read"], ["--output", "json"]])
def test_reading_has_no_question(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--read` and JSON have the form without questions."""
    typed(monkeypatch, "")
    assert main.run(["learn", "committed-offset", *words]) == 0
    done = capsys.readouterr()
    assert "prediction" not in done.out + done.err


def test_a_script_gets_no_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal the command must not wait for input."""
    monkeypatch.undo()
    assert main.run(["learn", "committed-offset", "--language", "en"]) == 0
    assert "prediction" not in capsys.readouterr().out


def test_cluster_stays_until_enter(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its address and three commands are on standard error."""
    typed(monkeypatch, "\n\n")
    assert main.run(["learn", "committed-offset", "--stay"]) == 0
    lines = capsys.readouterr().err.splitlines()
    commands = [line for line in lines if line.startswith("  ottla ")]
    address = commands[0].rpartition(" ")[2]
    assert f"The cluster stays at {address} until you press Enter." in "\n".join(lines)
    assert len(commands) == 3
    assert all(address in command for command in commands)


def test_next_is_the_first_lesson_that_is_not_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged file of the progress counts as an empty one."""
    first, second, *_ = LESSONS
    progress.path().write_text("{", encoding="utf-8")
    assert progress.first_open(LESSONS) == first
    for name in LESSONS:
        if name != "committed-offset":
            progress.mark(name)
    typed(monkeypatch, "\n")
    assert main.run(["learn", "next"]) == 0
    assert "Question · committed-offset" in capsys.readouterr().out
    progress.mark("committed-offset")
    assert main.run(["learn", "next"]) == 1
    assert f"all {len(LESSONS)} lessons are done" in capsys.readouterr().err
    assert second in progress.done()


def test_every_lesson_asks_for_a_prediction() -> None:
    """No lesson is only read."""
    assert PREDICTIONS.keys() == LESSONS.keys()


@pytest.mark.parametrize("name", PREDICTIONS)
def test_predictions_are_complete(name: str) -> None:
    """Each belongs to a lesson, has two to four choices and one right one, in both languages."""
    prediction = PREDICTIONS[name]
    assert name in LESSONS
    texts: list[Text] = [prediction.question]
    if isinstance(prediction, Prediction):
        assert 2 <= len(prediction.choices) <= 4
        assert [choice.why_not for choice in prediction.choices].count(None) == 1
        texts += [choice.text for choice in prediction.choices]
        texts += [choice.why_not for choice in prediction.choices if choice.why_not]
    else:
        assert isinstance(prediction, Number)
    for text in texts:
        assert len({text.render(language) for language in LANGUAGES}) == 2
