"""Lessons for the command line: the list, the drawing of lessons as they run, and their JSON."""

import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ottla.base.loading import deferred_module
from ottla.learn.course import LESSONS, Report, cluster_for, find, play
from ottla.learn.events import Event, Step, TableView, Text, shown
from ottla.learn.lesson import Lesson
from ottla.tools.output import Output, note

# rich takes as long to load as a short command.
if TYPE_CHECKING:
    from ottla.learn import drawing
else:
    drawing = deferred_module("ottla.learn.drawing")

_HEADINGS = Text("name", "名称"), Text("question", "问题")
_HINT = Text(
    "Run one with `ottla learn NAME`; --step waits for Enter after each step.",
    "用 `ottla learn 名称` 运行一个课程；--step 在每一步之后等待回车。",
)
_ENTER = Text("Press Enter to continue.", "按回车键继续。")
_KINDS = {"PartitionView": "partition", "GroupView": "group", "TableView": "table"}


def names() -> list[str]:
    """Return the names of the lessons, in the order of the course."""
    return list(LESSONS)


def run(output: Output, chosen: Sequence[str], *, language: str, waits: bool) -> None:
    """Run lessons, each on a cluster of its own; without names, list them.

    OttlaError names an unknown lesson before anything runs. `waits` stops after the question and
    each step until Enter is pressed.
    """
    lessons = [find(name) for name in dict.fromkeys(chosen)]
    if not lessons:
        _list(output, language)
        return
    # Brokers and clients that are killed on purpose need not warn about it.
    logging.getLogger("ottla").addHandler(logging.NullHandler())
    if output.is_json:
        results = [_json(lesson, _alone(lesson), language) for lesson in lessons]
        output.rows(results, (), is_ascii=False)
        return
    for lesson in lessons:
        _draw(lesson, language, waits=waits)


def _list(output: Output, language: str) -> None:
    rows = [
        {
            "name": lesson.name,
            "subject": lesson.subject,
            "question": lesson.question.render(language),
        }
        for lesson in LESSONS.values()
    ]
    if output.is_json:
        output.rows(rows, (), is_ascii=False)
        return
    name, question = (heading.render(language) for heading in _HEADINGS)
    if sys.stdout.isatty():
        drawing.Drawing(sys.stdout, language).lessons((name, question), LESSONS.values())
    else:
        listed = [{name: row["name"], question: row["question"]} for row in rows]
        output.rows(listed, (name, question))
    note(_HINT.render(language))


def _alone(lesson: Lesson) -> Report:
    with cluster_for(lesson) as cluster:
        return play(lesson, cluster)


def _draw(lesson: Lesson, language: str, *, waits: bool) -> None:
    picture = drawing.Drawing(sys.stdout, language)
    picture.question(lesson)

    def show(event: Event) -> None:
        picture.event(event)
        if waits and isinstance(event, Step):
            _wait(language)

    if waits:
        _wait(language)
    with cluster_for(lesson) as cluster:
        report = play(lesson, cluster, show)
    picture.explanation(lesson.explanation.render(language, report.facts))


def _wait(language: str) -> None:
    """Wait for Enter, or for the end of the input."""
    sys.stdout.flush()
    if sys.stdin.isatty():
        note(_ENTER.render(language))
    sys.stdin.readline()


def _json(lesson: Lesson, report: Report, language: str) -> dict[str, Any]:
    return {
        "name": lesson.name,
        "subject": lesson.subject,
        "question": lesson.question.render(language),
        "events": [_event(event, language) for event in report.events],
        "facts": {name: _plain(value, language) for name, value in report.facts.items()},
        "explanation": lesson.explanation.render(language, report.facts),
    }


def _event(event: Event, language: str) -> dict[str, Any]:
    if isinstance(event, Step):
        return {"kind": "step", "text": event.text.render(language, event.facts)}
    kind = {"kind": _KINDS[type(event).__name__]}
    if isinstance(event, TableView):
        names = [column.en for column in event.columns]
        rows = [
            {name: shown(cell, language) for name, cell in zip(names, row, strict=True)}
            for row in event.rows
        ]
        return {**kind, "title": event.title.render(language), "rows": rows}
    return {**kind, **asdict(event)}


def _plain(value: Any, language: str) -> Any:
    if isinstance(value, bytes | Text):
        return shown(value, language)
    if isinstance(value, dict):
        return {shown(key, language): _plain(item, language) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item, language) for item in value]
    return value
