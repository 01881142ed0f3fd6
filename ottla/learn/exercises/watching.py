"""An exercise on a terminal: the task, the state of the goal as it changes, and hints on request."""

import select
import sys
from collections.abc import Callable

from ottla.learn.events import Text
from ottla.learn.exercises.catalogue import prepared
from ottla.learn.exercises.exercise import Check, Exercise
from ottla.tools.output import note

_POLL_S = 0.5
_WHERE = Text(
    "Work in another terminal, after `export OTTLA_BOOTSTRAP={bootstrap}`. This one watches: h and Enter shows a hint, q and Enter ends.",
    "在另一个终端中操作，先执行 `export OTTLA_BOOTSTRAP={bootstrap}`。本终端持续检查：输入 h 回车显示提示，q 回车结束。",
)
_OPEN = Text("Not yet: {missing}", "尚未完成：{missing}")
_DONE = Text("Done: the goal is reached.", "完成：目标已达到。")
_NO_HINT = Text("That was the last hint.", "这是最后一个提示。")
_ENDED = Text("Ended before the goal was reached.", "在达到目标之前结束。")

ReadLine = Callable[[float], str | None]
"""Returns a line that was typed within some seconds, "" at the end of the input, None otherwise."""


def typed_line(timeout_s: float) -> str | None:
    """Return the line that is typed within some seconds; "" at the end of the input.

    Not done: Windows, where `select` takes only sockets.
    """
    readable, _, _ = select.select([sys.stdin], [], [], timeout_s)
    return sys.stdin.readline() if readable else None


def watch(exercise: Exercise, language: str, read_line: ReadLine = typed_line) -> bool:
    """Run an exercise until its goal is reached; return False if the reader ends it before."""
    note(exercise.task.render(language))
    with prepared(exercise) as (cluster, check):
        note(_WHERE.render(language, {"bootstrap": cluster.bootstrap}))
        try:
            is_done = _watch(exercise, check, language, read_line)
        except KeyboardInterrupt:
            is_done = False
    note((_DONE if is_done else _ENDED).render(language))
    return is_done


def _watch(exercise: Exercise, check: Check, language: str, read_line: ReadLine) -> bool:
    hints, shown = list(exercise.hints), ""
    while (missing := check()) is not None:
        text = missing.render(language)
        if text != shown:
            note(_OPEN.render(language, {"missing": text}))
            shown = text
        line = read_line(_POLL_S)
        if line == "" or (line or "").strip() == "q":
            return False
        if line is not None:
            hint = hints.pop(0) if hints else _NO_HINT
            note(
                Text(*(part.replace("{", "{{").replace("}", "}}") for part in hint)).render(
                    language
                )
            )
    return True
