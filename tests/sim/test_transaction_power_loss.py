"""A transaction and a loss of power at every change of the disk: all of it is visible, or nothing is.

A change is replayed by `python -m tests.sim.one_transaction CHANGE`.
"""

import pytest

from ottla.coordinators.txn.shard import TransactionShard

from .one_transaction import Scenario, played

# From the first partition to the last marker; the scenario makes fewer changes than that.
CHANGES = range(1, 65)
EVERYTHING = (["1"], ["1"], 1)
NOTHING: tuple[list[str], list[str], int] = ([], [], -1)


def judge(scenario: Scenario, *, is_commit: bool) -> None:
    """Fail unless the transaction is atomic, and the next one is possible and complete."""
    before, after = scenario.seen
    place = f"change {scenario.change}, {scenario.second_change}"
    assert before in (EVERYTHING, NOTHING), place
    if not is_commit:
        assert before == NOTHING, place
    elif scenario.is_answered:
        assert before == EVERYTHING, place
    assert after == ([*before[0], "2"], [*before[1], "2"], 2), place


@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_loss_of_power_at_any_step_leaves_all_or_nothing(is_commit: bool) -> None:
    """Records of two partitions and a group's offset; whatever was answered stays."""
    losses = []
    for change in CHANGES:
        scenario = played(change, is_commit=is_commit)
        judge(scenario, is_commit=is_commit)
        losses.append(scenario.losses)
    assert losses[0] == 1
    assert losses[-1] == 0, "the last step has been reached"


@pytest.mark.parametrize(
    "changes",
    [CHANGES[::4], pytest.param(CHANGES, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_so_does_another_one_while_the_broker_takes_up_what_it_left(
    is_commit: bool, changes: range
) -> None:
    """At every step, and then in the middle of the next start or of what it brings to an end."""
    answers = []
    for change in changes:
        scenario = played(change, is_commit=is_commit, second_change=1 + change * 7 % 80)
        judge(scenario, is_commit=is_commit)
        answers.append((scenario.losses, scenario.is_answered))
    assert (2, False) in answers
    assert max(answers)[0] == 2


def test_a_coordinator_that_does_not_take_up_what_was_left_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scenario can fail: transactions hang where nobody ends them after a start."""
    monkeypatch.setattr(TransactionShard, "on_loaded", lambda self: None)
    hanging = []
    for change in CHANGES[::4]:
        try:
            played(change, is_commit=True)
        except TimeoutError:
            hanging.append(change)
    assert len(hanging) > 1
