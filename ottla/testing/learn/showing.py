"""Lessons for the command line: the list, the drawing of lessons as they run, and their JSON."""

import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ottla.testing.learn.course import LESSONS, Report, cluster_for, find, play
from ottla.testing.learn.drawing import Drawing
from ottla.testing.learn.events import Event, Step, TableView, shown
from ottla.testing.learn.lesson import Lesson
from ottla.tools.output import Output, note

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
        output.rows(_listing(language), ("name", "question"))
        if not output.is_json:
            note("Run one with `ottla learn NAME`; --step waits for Enter after each step.")
        return
    # Brokers and clients that are killed on purpose need not warn about it.
    logging.getLogger("ottla").addHandler(logging.NullHandler())
    if output.is_json:
        output.rows([_json(lesson, _alone(lesson), language) for lesson in lessons], ())
        return
    for lesson in lessons:
        _draw(lesson, language, waits=waits)


def _listing(language: str) -> list[dict[str, str]]:
    return [
        {
            "name": lesson.name,
            "subject": lesson.subject,
            "question": lesson.question.render(language),
        }
        for lesson in LESSONS.values()
    ]


def _alone(lesson: Lesson) -> Report:
    with cluster_for(lesson) as cluster:
        return play(lesson, cluster)


def _draw(lesson: Lesson, language: str, *, waits: bool) -> None:
    drawing = Drawing(sys.stdout, language)
    drawing.question(lesson)

    def show(event: Event) -> None:
        drawing.event(event)
        if waits and isinstance(event, Step):
            _wait()

    if waits:
        _wait()
    with cluster_for(lesson) as cluster:
        report = play(lesson, cluster, show)
    drawing.explanation(lesson.explanation.render(language, report.facts))


def _wait() -> None:
    """Wait for Enter, or for the end of the input."""
    sys.stdout.flush()
    sys.stdin.readline()


def _json(lesson: Lesson, report: Report, language: str) -> dict[str, Any]:
    return {
        "name": lesson.name,
        "subject": lesson.subject,
        "question": lesson.question.render(language),
        "events": [_event(event, language) for event in report.events],
        "facts": {name: _plain(value) for name, value in report.facts.items()},
        "explanation": lesson.explanation.render(language, report.facts),
    }


def _event(event: Event, language: str) -> dict[str, Any]:
    if isinstance(event, Step):
        return {"kind": "step", "text": event.text.render(language, event.facts)}
    kind = {"kind": _KINDS[type(event).__name__]}
    if isinstance(event, TableView):
        rows = [dict(zip(event.columns, map(shown, row), strict=True)) for row in event.rows]
        return {**kind, "title": event.title.render(language), "rows": rows}
    return {**kind, **asdict(event)}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return shown(value)
    if isinstance(value, dict):
        return {shown(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
