"""A consumer that librdkafka lets wait for ever subscribes again, and no other one."""

from typing import Any, cast

import pytest

from ottla.client import transport
from ottla.client.consumer import membership
from ottla.client.consumer.membership import Membership
from ottla.client.group.departures import Departures
from ottla.client.reach.explanations import Explanations
from ottla.client.records import TopicPartition


class Librdkafka:
    """A consumer of librdkafka that joins when the test says so."""

    def __init__(self) -> None:
        self.id = ""
        self.subscriptions: list[list[str]] = []

    def memberid(self) -> str:
        return self.id

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.subscriptions.append(topics)

    def unsubscribe(self) -> None:
        self.subscriptions.clear()

    def incremental_assign(self, rows: list[Any]) -> None:
        """Take the partitions."""


class Times:
    """The `time` of the module."""

    def __init__(self) -> None:
        self.now = 50.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    """Return the clock, which the test advances."""
    times = Times()
    monkeypatch.setattr(membership, "time", times)
    return times


def poll_for(times: Times, member: Membership, seconds: int) -> None:
    for _ in range(10 * seconds):
        times.now += 0.1
        member.polled()


@pytest.fixture
def native() -> Librdkafka:
    """Return librdkafka's consumer."""
    return Librdkafka()


@pytest.fixture
def member(native: Librdkafka, times: Times) -> Membership:
    """Return a consumer that has subscribed to a topic."""
    member = Membership(
        native, cast(Departures, None), Explanations({}), is_incremental=False, store=None
    )
    member.subscribe(["t"], None)
    return member


def test_a_consumer_without_an_id_subscribes_every_ten_seconds(
    native: Librdkafka, member: Membership, times: Times
) -> None:
    """librdkafka has not begun to join, so no membership can be lost."""
    poll_for(times, member, 9)
    assert native.subscriptions == [["t"]]
    poll_for(times, member, 2)
    assert native.subscriptions == [["t"], ["t"]]
    poll_for(times, member, 20)
    assert native.subscriptions == [["t"]] * 4


def test_a_member_that_waits_for_the_others_is_left_alone(
    native: Librdkafka, member: Membership, times: Times
) -> None:
    """It has an id; a rebalance may take minutes, and a member may have no partition."""
    native.id = "member-1"
    poll_for(times, member, 30)
    assert native.subscriptions == [["t"]]


@pytest.mark.parametrize("is_assigned", [True, False], ids=["assigned", "unsubscribed"])
def test_a_consumer_that_waits_for_nothing_is_left_alone(
    native: Librdkafka, member: Membership, times: Times, is_assigned: bool
) -> None:
    """Partitions that the caller has chosen, or no subscription, need no group."""
    if is_assigned:
        member.assign({TopicPartition("t", 0): 5})
    else:
        member.unsubscribe(transport.Waits())
    before = list(native.subscriptions)
    poll_for(times, member, 30)
    assert native.subscriptions == before


def test_partitions_that_stay_are_reported_when_others_come_or_go(native: Librdkafka) -> None:
    """librdkafka drops a lookup of theirs that is on the way, and repeats it too late."""
    stays: list[set[TopicPartition]] = []
    member = Membership(
        native, Departures("g", {}), Explanations({}), is_incremental=True, store=None
    )
    member.on_rebalance(
        lambda *_: None, lambda *_: None, lambda partitions: stays.append(set(partitions))
    )
    member.subscribe(["t"], None)
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    member._assigned(native, transport.partitions({first: membership.STORED}))
    member._assigned(native, transport.partitions({second: membership.STORED}))
    member._revoked(native, transport.partitions({first: membership.STORED}))
    assert stays == [set(), {first}, {second}]


class Closing:
    """A consumer of librdkafka that has records and an assignment behind them when it is closed."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.member: Membership | None = None
        self.waiting = [["record"] * 500, ["record"], []]

    def assignment(self) -> list[Any]:
        """Return the partition that is read."""
        return transport.partitions({("t", 0): membership.STORED})

    def pause(self, rows: list[Any]) -> None:
        """Note the partitions."""
        self.calls += [f"pause {row.topic}-{row.partition}" for row in rows]

    def consume(self, count: int, timeout: float) -> list[str]:
        """Return what waits; the assignment is behind the first records."""
        self.calls.append("consume")
        if len(self.waiting) == 2:
            assert self.member is not None
            self.member._assigned(self, transport.partitions({("t", 1): membership.STORED}))
        return self.waiting.pop(0)

    def assign(self, rows: Any) -> None:
        """Note the call."""
        self.calls.append("assign")

    def close(self) -> None:
        """Note the call."""
        self.calls.append("close")


class Observing(membership.RebalanceListener):
    """Counts assignments."""

    count = 0

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Count."""
        self.count += 1


@pytest.mark.parametrize("has_own_member", [False, True])
def test_close_takes_a_waiting_assignment_before(has_own_member: bool) -> None:
    """A group that has ended does not respond to `assign`; the listener is not called.

    All partitions are paused, so that no record is fetched to be dropped.
    """
    native, listener = Closing(), Observing()
    member = native.member = Membership(
        native,
        Departures("g", {}),
        Explanations({}),
        is_incremental=False,
        store=None,
        has_own_member=has_own_member,
    )
    member._listener = listener
    member.close(transport.Waits())
    drained = ["pause t-0", "consume", "consume", "assign", "pause t-1", "consume"]
    assert native.calls == [*([] if has_own_member else drained), "close"]
    assert listener.count == 0


def test_close_drops_no_records_of_partitions_that_the_caller_has_assigned() -> None:
    """No assignment of a group can wait behind them."""
    native = Closing()
    member = Membership(
        native, Departures("g", {}), Explanations({}), is_incremental=False, store=None
    )
    member.assign({TopicPartition("t", 0): 5})
    member.close(transport.Waits())
    assert native.calls == ["close"]
