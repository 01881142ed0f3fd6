"""Single faults, each with limits besides safety: how long writes stop, and how long the recovery
takes.

The limits are simulated seconds; a session ends six seconds after its broker falls silent. A broker
whose process has ended is noticed at once, a silent one when its session ends.
"""

from typing import NamedTuple

import pytest

from ottla.testing.sim.cluster.run import simulate
from ottla.testing.sim.cluster.scenario import Fault, Schedule, parse

from .cluster import SESSION_SECONDS

pytestmark = pytest.mark.slow

SEED = 7
CLUSTER = """
summary = "Directed faults."
pause = [1.0, 1.0]
seconds = {seconds}
flush_on_ack = {flush}
[faults.kill]
seconds = [1.0, 1.0]
"""
# A process that has ended is replaced within this time, whatever the session timeout.
DEAD = 5.0
# 1.5 sessions and two seconds, as for Apache Kafka.
SILENT = 1.5 * SESSION_SECONDS + 2
# A leader without requests from followers removes all of them from the ISR, and is then its last
# member: until it is back, no replica is known to have every committed record (the same in Apache
# Kafka with ZooKeeper).
UNTIL_HEALED = 12.0 + 2.0


class Criterion(NamedTuple):
    """Faults, the longest gap between acknowledgements, and the longest recovery after them."""

    schedule: Schedule
    gap_seconds: float
    recovery_seconds: float = 10.0
    seconds: float = 10.0
    flush_on_ack: bool = False


CRITERIA = {
    "leaders are killed in turn": Criterion(
        tuple(Fault(at, "kill", "leader 0", 1.5) for at in (1.0, 4.0, 7.0)), DEAD
    ),
    "a leader is killed when its follower has just restarted": Criterion(
        (Fault(1.0, "kill", "broker 2", 1.0), Fault(2.03, "kill", "leader 0", 2.0)), DEAD
    ),
    "all brokers are killed": Criterion((Fault(1.0, "kill_all", "broker 1", 1.0, 250),), 10.0),
    "all brokers lose power": Criterion(
        (Fault(1.0, "blackout", "broker 1", 1.0, 250),), 10.0, flush_on_ack=True
    ),
    "the controller's session expires": Criterion(
        (Fault(1.0, "expire_session", "controller", 0.0),), DEAD
    ),
    "the controller is paused for three sessions": Criterion(
        (Fault(1.0, "pause", "controller", 18.0),), SILENT, seconds=20.0
    ),
    "a leader is cut off from the ensemble": Criterion(
        (Fault(1.0, "leave_ensemble", "leader 0", 12.0),), SILENT, seconds=14.0
    ),
    "a leader is cut off from its followers": Criterion(
        (Fault(1.0, "leave_followers", "leader 0", 5.0),), SILENT
    ),
    "a leader sends nothing to anyone": Criterion(
        (Fault(1.0, "cut_outgoing", "leader 0", 12.0, 2),), SILENT, seconds=14.0
    ),
    "a leader receives nothing from anyone": Criterion(
        (Fault(1.0, "cut_incoming", "leader 0", 12.0, 2),), UNTIL_HEALED, seconds=14.0
    ),
    "the ensemble is unreachable for three sessions": Criterion(
        tuple(Fault(1.0, "leave_ensemble", f"broker {number}", 18.0) for number in (1, 2, 3)),
        DEAD,
        seconds=20.0,
    ),
    "a broker restarts faster than its session ends": Criterion(
        (Fault(1.0, "kill", "leader 0", 0.05), Fault(4.0, "kill", "leader 1", 0.05)), DEAD
    ),
    "brokers are stopped and restarted in turn": Criterion(
        tuple(Fault(1.0 + 4 * index, "stop", f"broker {index + 1}", 1.0) for index in range(3)),
        DEAD,
        seconds=13.0,
    ),
}
QUICK = ("leaders are killed in turn", "all brokers lose power", "the controller's session expires")


# Each of the others lasts as long, and fails for the same mistakes in elections and recoveries.
_TEST = "tests/sim/test_cluster_criteria.py::test_a_fault_stops_writes_for_a_limited_time"
NIGHTLY = pytest.mark.nightly(_TEST)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[NIGHTLY] * (name not in QUICK)) for name in CRITERIA]
)
def test_a_fault_stops_writes_for_a_limited_time(name: str) -> None:
    """No acknowledged record is lost, acknowledgements resume, and all replicas are in sync soon
    after.
    """
    criterion = CRITERIA[name]
    flush = str(criterion.flush_on_ack).lower()
    scenario = parse(CLUSTER.format(seconds=criterion.seconds, flush=flush))
    result = simulate(scenario, SEED, criterion.schedule)
    assert result.is_good, result.report()
    assert sum(result.applied.values()) == len(criterion.schedule)
    assert result.gap_seconds <= criterion.gap_seconds
    assert result.recovery_seconds <= criterion.recovery_seconds
