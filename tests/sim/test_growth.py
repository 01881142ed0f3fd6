"""The costs of a cluster grow no faster than its work: messages, writes, round trips, calls."""

import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from bench.growth_cluster import measure
from bench.growth_report import REST, Figures, Growth, Row, fit

pytestmark = pytest.mark.slow

BROKERS = (3, 9)
PARTITIONS = (60, 360)


class Calls:
    """Counts calls of functions: unlike processor time, every run has the same number."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> float:
        """Return the calls until now."""
        return self.count

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Count a call; see `sys.setprofile`."""
        self.count += event in ("call", "c_call")


@pytest.fixture(scope="module")
def rows() -> Iterator[list[Row]]:
    """The figures of clusters that differ by a factor of three, and of topics by six."""
    calls, former = Calls(), sys.getprofile()
    sys.setprofile(calls.note)
    try:
        cases = [
            {"brokers": count, "partitions": number, "events": measure(count, number, calls)}
            for count in BROKERS
            for number in PARTITIONS
        ]
    finally:
        sys.setprofile(former)
    return cases


def growth(rows: list[Row], event: str, figure: str) -> Growth:
    """Return the exponents of a figure."""
    result = fit(rows, event, figure)
    assert result is not None, f"{event} has no {figure}"
    return result


def of(rows: list[Row], event: str) -> list[Figures]:
    """Return the figures of an event in every case."""
    return [row["events"][event] for row in rows]


@pytest.mark.parametrize("event", ["isr change", "loss", "leader move"])
def test_the_tree_has_one_write_for_each_changed_partition(rows: list[Row], event: str) -> None:
    """A change of leader or ISR writes the states of the changed partitions, nothing else."""
    assert [item["tree writes"] for item in of(rows, event)] == [
        item["changed"] for item in of(rows, event)
    ]


def test_the_tree_has_no_traffic_at_rest(rows: list[Row]) -> None:
    """A cluster in which nothing happens neither reads nor writes the tree."""
    assert {item["tree reads"] + item["tree writes"] for item in of(rows, REST)} == {0}


# A broker that returns connects to the others, and they to it. Each of them proposes its ISRs as
# replicas catch up, and every announcement of a tenth of a second goes to all.
@pytest.mark.parametrize(("event", "most"), [("isr change", 1.2), ("return", 1.7), ("delete", 1.2)])
def test_messages_grow_like_the_brokers(rows: list[Row], event: str, most: float) -> None:
    """Changes of a moment reach a broker in one message, however many partitions they concern."""
    messages = growth(rows, event, "messages")
    assert messages.brokers < most
    assert messages.partitions < 0.4


def test_election_after_a_loss_takes_a_few_round_trips(rows: list[Row]) -> None:
    """The number of brokers and partitions hardly delays the new leaders."""
    elected = growth(rows, "loss", "elected after, s")
    assert elected.brokers < 0.45
    assert elected.partitions < 0.3


def test_deletion_takes_a_few_round_trips(rows: list[Row]) -> None:
    """The nodes of a topic are not read one after the other."""
    assert growth(rows, "delete", "seconds").partitions < 0.5


def test_a_change_of_the_isr_costs_as_much_in_a_large_topic(rows: list[Row]) -> None:
    """The controller handles the partitions that change, not all partitions of their topics."""
    # At most twenty partitions change in each case, and fewer of the small topics.
    changed = growth(rows, "isr change", "changed")
    calls = growth(rows, "isr change", "controller, CPU s")
    assert calls.partitions < changed.partitions + 0.1


@pytest.mark.parametrize(
    "event", ["loss", "return", "leader move", "fail over", "delete", "create"]
)
def test_the_controllers_work_grows_no_faster_than_the_changes(rows: list[Row], event: str) -> None:
    """Its calls grow at most like the partitions, and like the brokers that are informed."""
    calls = growth(rows, event, "controller, CPU s")
    assert calls.partitions < 1.05
    assert calls.brokers < 1.1


def test_a_brokers_work_at_rest_grows_no_faster_than_its_leaders(rows: list[Row]) -> None:
    """A follower has one fetch for each leader under way."""
    calls = growth(rows, REST, "a broker, CPU s")
    assert calls.brokers < 1.1
    assert calls.partitions < 0.8
