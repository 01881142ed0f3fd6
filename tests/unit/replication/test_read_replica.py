"""The replica from which a consumer reads (KIP-392): pure."""

import pytest

from ottla.replication.isr import IsrMachine
from ottla.replication.leading import NO_PREFERENCE, preferred_read_replica

RACKS = {1: "a", 2: "b", 3: "b", 4: "c"}


def leader(
    isr: tuple[int, ...] = (1, 2, 3, 4), ends: tuple[int, int, int] = (9, 9, 9)
) -> IsrMachine:
    """Return a leader on broker 1 whose followers 2, 3 and 4 have logs with these ends."""
    machine = IsrMachine(1, replicas=(1, 2, 3, 4), isr=isr, high_watermark=5, now=0.0)
    for replica, end in zip((2, 3, 4), ends, strict=True):
        machine.fetched(
            replica, offset=end, log_start_offset=2, leader_end_offset=9, now=float(replica)
        )
    return machine


@pytest.mark.parametrize(
    ("rack", "preferred"),
    [("a", NO_PREFERENCE), ("b", 3), ("c", 4), ("d", NO_PREFERENCE), ("", NO_PREFERENCE)],
)
def test_replica_in_the_rack_of_the_consumer_is_preferred(rack: str, preferred: int) -> None:
    """The leader serves its own rack, and racks without a replica."""
    assert preferred_read_replica(leader(), 5, rack, RACKS.get) == preferred


def test_replica_with_the_longest_log_is_preferred() -> None:
    """Among several replicas of a rack the one that lags least is chosen."""
    assert preferred_read_replica(leader(ends=(9, 8, 9)), 5, "b", RACKS.get) == 2


def test_replica_outside_the_isr_is_not_preferred() -> None:
    """A replica outside the ISR is not preferred, because the consumer would wait for records that
    it lacks.
    """
    assert preferred_read_replica(leader(isr=(1, 2)), 5, "b", RACKS.get) == 2
    assert preferred_read_replica(leader(isr=(1,)), 5, "b", RACKS.get) == NO_PREFERENCE


@pytest.mark.parametrize("offset", [1, 10])
def test_replica_without_the_offset_is_not_preferred(offset: int) -> None:
    """A replica without the offset is not preferred: the consumer would get OFFSET_OUT_OF_RANGE."""
    assert preferred_read_replica(leader(), offset, "b", RACKS.get) == NO_PREFERENCE


def test_broker_that_cannot_be_reached_is_not_preferred() -> None:
    """A broker without the consumer's listener has no rack."""
    assert preferred_read_replica(leader(), 5, "c", {1: "a"}.get) == NO_PREFERENCE
