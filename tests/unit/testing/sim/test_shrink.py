"""A failing schedule of faults is shrunk to a short one that still fails."""

from ottla.testing.sim.cluster.scenario import Fault, Schedule
from ottla.testing.sim.cluster.shrink import shrink

SCHEDULE = tuple(Fault(float(at), "kill", f"broker {at % 3}", 8.0) for at in range(20))


def test_only_the_faults_that_matter_remain() -> None:
    """Two faults cause the failure together, if the second one is long enough."""

    def fails(schedule: Schedule) -> bool:
        times = {fault.at: fault.seconds for fault in schedule}
        return 3.0 in times and times.get(11.0, 0.0) >= 2.0

    assert [(fault.at, fault.seconds) for fault in shrink(SCHEDULE, fails)] == [
        (3.0, 0.031),
        (11.0, 2.0),
    ]


def test_a_failure_without_faults_needs_no_schedule() -> None:
    """The workload alone fails."""
    assert shrink(SCHEDULE, lambda _: True) == ()


def test_the_number_of_runs_is_bounded() -> None:
    """The shortest failing schedule so far is returned."""
    runs = 0

    def fails(schedule: Schedule) -> bool:
        nonlocal runs
        runs += 1
        return len(schedule) >= 5

    assert 5 <= len(shrink(SCHEDULE, fails, runs_max=7)) < 20
    assert runs == 7
