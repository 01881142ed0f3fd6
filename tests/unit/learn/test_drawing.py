"""The pictures on the terminal: replicas with their high watermark, and the owners of partitions."""

import io

import pytest
from rich.cells import cell_len

from ottla.learn.course import LESSONS
from ottla.learn.drawing import Drawing
from ottla.learn.events import (
    Event,
    GroupView,
    PartitionView,
    ReplicaView,
    Slot,
    Step,
    TableView,
    Text,
)


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the terminal be as wide as most are."""
    monkeypatch.setenv("COLUMNS", "80")


def drawn(event: Event, language: str = "en") -> list[str]:
    """Return the lines of one event, without the spaces at their ends."""
    stream = io.StringIO()
    Drawing(stream, language).event(event)
    return [line.rstrip() for line in stream.getvalue().splitlines() if line.strip()]


def partition(count: int, *, value: str = "r", high_watermark: int, behind: int) -> PartitionView:
    """Return a partition of two replicas, of which the second lacks the last records."""
    slots = tuple(Slot(offset, f"{value}{offset}") for offset in range(count))
    leader = ReplicaView(1, "leader", count, slots)
    follower = ReplicaView(2, "in sync", count - behind, slots[: count - behind])
    return PartitionView("orders", 0, 1, 4, (1, 2), high_watermark, (leader, follower))


def test_group_is_drawn_with_the_partitions_of_each_member() -> None:
    """Each member has a line with its partitions; one without is there, too."""
    owners = {"c1": ("orders-0", "orders-1"), "c2": ("orders-2",), "c3": ()}
    assert drawn(GroupView("billing", owners, {"orders-0": 3, "orders-2": 7})) == [
        "  billing   committed: orders-0: 3; orders-2: 7",
        "    c1 → orders-0, orders-1",
        "    c2 → orders-2",
        "    c3 → none",
    ]


def test_group_is_drawn_in_chinese() -> None:
    """The words of the picture are in the language of the lesson."""
    owners = {"c1": ("orders-0",), "c2": ()}
    assert drawn(GroupView("billing", owners, {}), "zh") == [
        "  billing   已提交: -",
        "    c1 → orders-0",
        "    c2 → 无",
    ]
    assert drawn(GroupView("billing", {}, {}), "zh")[-1] == "    没有成员"


def test_high_watermark_is_one_bar_in_each_line() -> None:
    """Consumers see what is to the left of the bold bar, in a replica that is behind, too."""
    assert drawn(partition(3, high_watermark=2, behind=1)) == [
        "  orders-0   leader 1 (epoch 4)   ISR 1, 2   HW 2",
        "    broker 1  leader   LEO 3  │ 0:r0  │ 1:r1  ┃ 2:r2",
        "    broker 2  in sync  LEO 2  │ 0:r0  │ 1:r1  ┃",
    ]


def test_high_watermark_behind_the_last_record() -> None:
    """If all records are committed, the bold bar is at the end of the picture."""
    assert drawn(partition(2, high_watermark=2, behind=1))[1:] == [
        "    broker 1  leader   LEO 2  │ 0:r0  │ 1:r1  ┃",
        "    broker 2  in sync  LEO 1  │ 0:r0  │       ┃",
    ]


def test_only_records_that_fit_are_drawn() -> None:
    """Labels are whole; the oldest records are left out if the terminal is too narrow."""
    lines = drawn(partition(5000, value="reading-", high_watermark=5000, behind=0))
    assert (
        lines[1] == "    broker 1  leader   LEO 5000  │ 4998:reading-4998  │ 4999:reading-4999  ┃"
    )
    assert all(len(line) <= 80 for line in lines)


def test_ends_of_logs_are_readable_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 40 columns the records are cut, not the labels."""
    monkeypatch.setenv("COLUMNS", "40")
    lines = drawn(partition(4501, high_watermark=1, behind=0))
    labels = [line.partition("│")[0].split() for line in lines if "LEO" in line]
    assert labels == [
        ["broker", "1", "leader", "LEO", "4501"],
        ["broker", "2", "in", "sync", "LEO", "4501"],
    ]


def test_chinese_sentence_is_broken_between_its_characters() -> None:
    """Lines are full, and no line starts with a closing mark or ends with an opening one."""
    text = "生产者没有发现异常：paid-3 已确认（offset 2），现在 leader 宕机。" * 6
    lines = drawn(Step(Text(text, text), {}), "zh")
    assert "".join(lines).replace(" ", "") == f"➤{text}".replace(" ", "")
    assert all(74 <= cell_len(line) <= 80 for line in lines[:-1])
    assert not [line for line in lines if line.strip()[0] in "，。：）" or line[-1] == "（"]


def test_long_lines_continue_below_their_text() -> None:
    """The second line of a sentence, and of the partitions of a member, is indented."""
    text = "The leader does not notice anything. " * 4
    assert {line[:2] for line in drawn(Step(Text(text, text), {}))[1:]} == {"  "}
    owned = tuple(f"orders-of-the-year-{number}" for number in range(8))
    committed = dict.fromkeys(owned, 1)
    label = "  billing   committed: "
    assert {line[: len(label)] for line in drawn(GroupView("billing", {}, committed))[:-1]} == {
        label,
        " " * len(label),
    }
    _, first, *rest = drawn(GroupView("billing", {"c1": owned}, {}))
    assert first.startswith("    c1 → orders-of-the-year-0, ")
    assert [line[:9].strip() for line in rest] == [""] * len(rest) != []


def test_word_that_is_wider_than_the_terminal_is_cut() -> None:
    """No line is wider than the terminal."""
    word = "x" * 200
    lines = drawn(Step(Text(word, word), {}))
    assert max(map(len, lines)) <= 80
    assert sum(line.count("x") for line in lines) == 200


def test_table_is_in_the_language_of_the_lesson() -> None:
    """Columns and cells that are texts have a Chinese form; values are as they are."""
    title, columns = Text("Answers", "响应"), (Text("acks", "acks"), Text("answer", "响应"))
    table = TableView(title, columns, ((0, Text("accepted", "已接受")), (2, "INVALID")))
    assert [line.split() for line in drawn(table, "zh") if "─" not in line] == [
        ["响应"], ["acks", "响应"], ["0", "已接受"], ["2", "INVALID"]
    ]  # fmt: skip
    assert ["0", "accepted"] in [line.split() for line in drawn(table)]


def test_facts_are_listed_as_the_language_lists() -> None:
    """Chinese has marks of its own between values, and both have a word for an empty list."""
    text = Text("{brokers}; {owners}; {lost}", "{brokers}。{owners}。{lost}")
    facts = {"brokers": [1, 2], "owners": {"c1": 0, "c2": Text("idle", "空闲")}, "lost": []}
    assert text.render("en", facts) == "1, 2; c1: 0; c2: idle; none"
    assert text.render("zh", facts) == "1、2。c1：0；c2：空闲。无"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_list_of_lessons_fits_into_the_terminal(language: str) -> None:
    """Each question is wrapped in its own column."""
    stream = io.StringIO()
    Drawing(stream, language).lessons(("name", "question"), LESSONS.values())
    first, *lines = stream.getvalue().splitlines()
    assert first.split() == ["NAME", "QUESTION"]
    assert max(map(cell_len, lines)) < 80
    question = first.index("QUESTION")
    assert {line[:question].strip() for line in lines} == {"", *LESSONS}
    assert all(len(line[:question].split()) <= 1 for line in lines)
