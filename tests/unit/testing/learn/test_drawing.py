"""The pictures on the terminal: replicas with their high watermark, and the owners of partitions."""

import io

import pytest

from ottla.testing.learn.drawing import Drawing
from ottla.testing.learn.events import Event, GroupView, PartitionView, ReplicaView, Slot


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
