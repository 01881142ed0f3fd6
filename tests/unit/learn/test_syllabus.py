"""Every question of the interview list, and every contradiction of the notes, has a lesson."""

import re

from ottla.learn.course import LESSONS
from ottla.learn.scenarios.defaults.kips import link
from ottla.learn.syllabus import CORRECTIONS, DEFAULTS, INTERVIEW
from tests.law.source import ROOT

PAGE = (ROOT / "docs/learn.md").read_text(encoding="utf-8")


def test_every_question_of_the_interview_list_has_a_lesson() -> None:
    """The list has 37 questions; each names lessons that exist."""
    assert len(INTERVIEW) == 37
    for question, lessons in INTERVIEW.items():
        assert lessons, question
        assert set(lessons) <= LESSONS.keys(), question


def test_every_contradiction_of_the_notes_has_a_lesson() -> None:
    """The numbers are 1 to 34 without a gap; each names lessons that exist."""
    assert list(CORRECTIONS) == list(range(1, 35))
    for number, (claim, answer, lessons) in CORRECTIONS.items():
        assert claim and answer and lessons, number
        assert set(lessons) <= LESSONS.keys(), number


def test_every_lesson_answers_something() -> None:
    """A lesson that no item names would be outside of the course."""
    used = {name for lessons in INTERVIEW.values() for name in lessons}
    used |= {name for *_, lessons in CORRECTIONS.values() for name in lessons}
    assert LESSONS.keys() == used | DEFAULTS.keys()


def test_lessons_about_defaults_name_their_kip_and_ottla() -> None:
    """Each has the default, a link to the KIP, and says whether Ottla differs, in both languages."""
    for name, (default, number, ottla) in DEFAULTS.items():
        for text in LESSONS[name].explanation:
            assert f"KIP-{number}" in text and link(number) in text, name
            assert "Apache Kafka" in text and "Ottla" in text, name
        row = f"| `{name}` | {default} | [KIP-{number}]({link(number)}) | {ottla} |"
        assert row in PAGE, row


def test_the_page_lists_every_lesson_and_every_item() -> None:
    """docs/learn.md has each lesson under a subject, and both lists as tables."""
    assert {name for name in LESSONS if f"`{name}`" not in PAGE} == set()
    for question, lessons in INTERVIEW.items():
        assert f"| {question} | {_names(lessons)} |" in PAGE, question
    for number, (claim, answer, lessons) in CORRECTIONS.items():
        assert f"| {number} | {claim} | {answer} | {_names(lessons)} |" in PAGE, number


def test_the_page_names_no_lesson_that_does_not_exist() -> None:
    """Every name in a table of docs/learn.md is a lesson."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    names = {name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row)}
    assert names == LESSONS.keys()


def _names(lessons: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in lessons)
