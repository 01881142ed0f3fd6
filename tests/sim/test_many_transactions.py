"""Transactions of old and new clients with power losses and crashes: each input has one output.

Replay a seed with `python -m tests.sim.many_transactions SEED`.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from ottla.coordinators.txn import machine
from ottla.server.produce.admission import Admission

from .many_transactions import INPUTS, OUTPUTS, WORKERS, Scenario, played

pytestmark = pytest.mark.slow

EXPECTED = sorted(f"{worker}:{number}" for worker in range(WORKERS) for number in range(INPUTS))


def judge(scenario: Scenario) -> None:
    """Fail unless both outputs have every input once, and the group's offsets are at the end."""
    location = f"seed {scenario.world.seed}"
    for name in OUTPUTS:
        assert sorted(scenario.seen[name]) == EXPECTED, f"{location} {name}"
    assert scenario.places == [INPUTS] * WORKERS, location


def failures(seeds: range) -> Iterator[int]:
    """Yield the seeds that fail: lost or duplicate outputs, or no progress."""
    for seed in seeds:
        try:
            judge(played(seed))
        except (AssertionError, TimeoutError):
            yield seed


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [range(15, 30), pytest.param(range(30), marks=pytest.mark.nightly("[seeds0]"))]
)
def test_every_input_has_one_output(seeds: range) -> None:
    """Records of two topics and the group's offsets change atomically."""
    deaths: Counter[str] = Counter()
    late: Counter[str] = Counter()
    lost = repeated = 0
    for seed in seeds:
        scenario = played(seed)
        judge(scenario)
        deaths += scenario.deaths
        late += scenario.late
        lost += scenario.lost
        repeated += sum(worker.repeated for worker in scenario.workers)
    # Everything that was to happen has happened.
    assert set(deaths) == {"init", "write", "offsets", "answered"}
    assert late["INVALID_PRODUCER_EPOCH"] > len(seeds) / 3
    assert lost > 2 * len(seeds)
    assert repeated > len(seeds)


@pytest.mark.slow
def test_broker_without_transaction_verification_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scenario detects transactions in partitions that were not added: they never end, and
    readers wait.
    """
    monkeypatch.setattr(Admission, "_decide", lambda self, applicant: {})
    assert list(failures(range(1))) == [0]


@pytest.mark.slow
def test_coordinator_that_does_not_bump_the_epoch_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scenario detects late requests that become part of the next transaction, and aborted
    records that are read.
    """
    end = machine.end

    def same_epoch(transaction, ending, now_ms):  # type: ignore[no-untyped-def]
        outcome = end(transaction, ending.producer, is_commit=ending.is_commit, now_ms=now_ms)
        return outcome._replace(producer=ending.producer)

    monkeypatch.setattr(machine, "end_with_bump", same_epoch)
    # One seed in about fifty detects it; the first one is enough.
    assert next(failures(range(64, 264)), None) is not None
