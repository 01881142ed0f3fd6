"""A transaction with a power loss at every change of the disk is visible completely or not at all.

Replay a change with `python -m tests.sim.one_transaction CHANGE`.
"""

import pytest

from ottla.coordinators.txn.shard import TransactionShard

from .one_transaction import Scenario, played

pytestmark = pytest.mark.slow

# From the first partition to the last marker; the scenario makes fewer changes than that.
CHANGES = range(1, 65)
_SOME = (
    "tests/sim/test_transaction_power_loss.py::"
    "test_transaction_is_atomic_after_second_power_loss_during_recovery"
)
EVERYTHING = (["1"], ["1"], 1)
NOTHING: tuple[list[str], list[str], int] = ([], [], -1)


def judge(scenario: Scenario, *, is_commit: bool) -> None:
    """Fail unless the transaction is atomic, and the next one succeeds completely."""
    before, after = scenario.seen
    location = f"change {scenario.change}, {scenario.second_change}"
    assert before in (EVERYTHING, NOTHING), location
    if not is_commit:
        assert before == NOTHING, location
    elif scenario.is_answered:
        assert before == EVERYTHING, location
    assert after == ([*before[0], "2"], [*before[1], "2"], 2), location


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_transaction_is_atomic_after_power_loss_at_any_step(is_commit: bool) -> None:
    """Records of two partitions and a group's offset are atomic; acknowledged ones are kept."""
    losses = []
    for change in CHANGES:
        scenario = played(change, is_commit=is_commit)
        judge(scenario, is_commit=is_commit)
        losses.append(scenario.losses)
    assert losses[0] == 1
    assert losses[-1] == 0, "the last step has been reached"


@pytest.mark.parametrize(
    "changes",
    [CHANGES[::4], pytest.param(CHANGES, marks=pytest.mark.nightly(_SOME))],
    ids=["some", "all"],
)
@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_transaction_is_atomic_after_second_power_loss_during_recovery(
    is_commit: bool, changes: range
) -> None:
    """A second power loss happens at any step of the next start or of the recovery of the
    transaction.
    """
    responses = []
    for change in changes:
        scenario = played(change, is_commit=is_commit, second_change=1 + change * 7 % 80)
        judge(scenario, is_commit=is_commit)
        responses.append((scenario.losses, scenario.is_answered))
    assert (2, False) in responses
    assert max(responses)[0] == 2


def test_coordinator_that_does_not_resume_transactions_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scenario detects it: transactions hang if they are not ended after a start."""
    monkeypatch.setattr(TransactionShard, "on_loaded", lambda self: None)
    hanging = []
    for change in CHANGES[::4]:
        try:
            played(change, is_commit=True)
        except TimeoutError:
            hanging.append(change)
    assert len(hanging) > 1
