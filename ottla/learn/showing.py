"""Lessons for the command line: the list, the drawing of lessons as they run, and their JSON."""

import logging
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ottla.base.errors import OttlaError
from ottla.base.loading import deferred_module
from ottla.learn import path, progress
from ottla.learn.asking import Asking
from ottla.learn.course import LESSONS, Report, cluster_for, find, play
from ottla.learn.events import Event, Step, TableView, Text, shown
from ottla.learn.exercises import watching
from ottla.learn.exercises.catalogue import EXERCISES
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
_STAY = Text(
    "The cluster stays at {bootstrap} until you press Enter. Try in another terminal:",
    "集群保留在 {bootstrap}，按回车键结束。在另一个终端中试试：",
)
_PROGRESS = Text(
    "Done: {done} of {all} lessons. `ottla learn next` continues with {name}.",
    "已完成：{all} 课中的 {done} 课。`ottla learn next` 从 {name} 继续。",
)
NEXT = "next"
_KINDS = {"PartitionView": "partition", "GroupView": "group", "TableView": "table"}


def names() -> list[str]:
    """Return the names of the lessons, in the order of the course."""
    return list(LESSONS)


def all_names() -> list[str]:
    """Return the names that a command line may have: lessons, exercises, and `next`."""
    return [*LESSONS, *EXERCISES, NEXT]


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """How lessons are shown. `waits` stops after the question and each step until Enter is pressed,
    `asks` requests predictions, and `stays` keeps the cluster until Enter is pressed.
    """

    language: str
    waits: bool = False
    asks: bool = True
    stays: bool = False


def run(output: Output, chosen: Sequence[str], options: ShowOptions) -> None:
    """Run lessons, each on a cluster of its own; without names, list them.

    OttlaError names an unknown lesson before anything runs. The name `next` is the first lesson
    of the path that is not done.
    """
    language = options.language
    if len(chosen) == 1 and chosen[0] in EXERCISES:
        _exercise(chosen[0], language)
        return
    lessons = [find(name) for name in dict.fromkeys(map(_resolved, chosen))]
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
        _draw(lesson, options)


def _exercise(name: str, language: str) -> None:
    if watching.watch(EXERCISES[name], language) and sys.stdout.isatty():
        _mark(name)


def list_exercises(output: Output, language: str) -> None:
    """List the exercises, with those that are done."""
    done = progress.done()
    rows = [
        {
            "name": name,
            "done": name in done,
            "task": exercise.task.render(language),
        }
        for name, exercise in EXERCISES.items()
    ]
    output.rows(rows, ("name", "done", "task"), is_ascii=False)


def show_map(output: Output, language: str) -> None:
    """Show the path through the lessons, with those that are done, and the next one."""
    done = progress.done()
    output.rows(
        path.rows(language, done), ("level", "subject", "lesson", "minutes", "done"), is_ascii=False
    )
    following = progress.first_open(path.ORDER)
    if not output.is_json and following is not None:
        facts = {"done": len(done & LESSONS.keys()), "all": len(LESSONS), "name": following}
        note(_PROGRESS.render(language, facts))


def _resolved(name: str) -> str:
    if name != NEXT:
        return name
    following = progress.first_open(path.ORDER)
    if following is None:
        raise OttlaError(
            f"all {len(LESSONS)} lessons are done: `ottla learn NAME` repeats one, and "
            f"{progress.path()} has the list"
        )
    return following


def is_interactive() -> bool:
    """Return True if a person reads and types: a script or CI gets lessons without questions."""
    return sys.stdin.isatty() and sys.stdout.isatty()


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
        picture = drawing.Drawing(sys.stdout, language)
        picture.lessons((name, question), LESSONS.values(), progress.done())
    else:
        listed = [{name: row["name"], question: row["question"]} for row in rows]
        output.rows(listed, (name, question))
    note(_HINT.render(language))


def _alone(lesson: Lesson) -> Report:
    with cluster_for(lesson) as cluster:
        return play(lesson, cluster)


def _draw(lesson: Lesson, options: ShowOptions) -> None:
    language = options.language
    picture = drawing.Drawing(sys.stdout, language)
    picture.question(lesson)
    asks = options.asks and is_interactive()
    asking = Asking(lesson.name if asks else "", language, print)
    steps = 0

    def show(event: Event) -> None:
        nonlocal steps
        picture.event(event)
        if not isinstance(event, Step):
            return
        steps += 1
        if options.waits:
            _wait(language)
        asking.after_step(steps)

    if options.waits:
        _wait(language)
    asking.after_step(0)
    with cluster_for(lesson) as cluster:
        report = play(lesson, cluster, show)
        asking.verdict(report.facts)
        picture.explanation(lesson.explanation.render(language, report.facts))
        if sys.stdout.isatty():
            _mark(lesson.name)
        if options.stays:
            _stay(cluster.bootstrap, language)


def _mark(name: str) -> None:
    try:
        progress.mark(name)
    except OSError as error:
        note(f"the progress is not stored: {error}")


def _stay(bootstrap: str, language: str) -> None:
    """Show how to reach the cluster, and keep it until Enter, the end of the input or Ctrl-C."""
    note(_STAY.render(language, {"bootstrap": bootstrap}))
    for line in (
        f"  ottla topic list --bootstrap {bootstrap}",
        f"  ottla cluster info --bootstrap {bootstrap}",
        f"  ottla console --cluster lesson={bootstrap}",
    ):
        note(line)
    with suppress(KeyboardInterrupt):
        _wait(language)


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
