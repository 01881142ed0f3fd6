"""Programs with state on disk, standbys and warm-up replicas are killed, started and stopped."""

import signal
import time

from tests.integration.streams.local.rebalancing import committed_counts
from tests.process.streams_program import (
    EACH_ONCE,
    KEYS,
    PARTITIONS,
    SESSION_S,
    Programs,
    WordLoad,
    await_restores,
)

# The standby of a killed program has its tasks after this time: the session, and the rest.
_TAKE_OVER_S = SESSION_S + 2
_FIRST = 2_000
_HALF = PARTITIONS // 2


def test_a_killed_program_restores_only_the_end_of_its_changelogs(programs: Programs) -> None:
    """Its state on disk has all commits but the last ones, and each record counts once."""
    first = programs.start()
    first.await_running()
    with WordLoad(programs.bootstrap):
        committed_counts(programs.bootstrap, "out", _FIRST)
        first.end(signal.SIGKILL)
        again = programs.start()
        await_restores(again, PARTITIONS)
    # Without its state it would read at least the first records.
    assert sum(again.restores()) < _FIRST / 4, again.log()
    assert programs.counts() == [EACH_ONCE] * KEYS


def test_a_standby_takes_over_when_the_session_of_the_owner_ends(programs: Programs) -> None:
    """The other program has followed the changelogs, although it processes tasks of its own."""
    lost, left = (programs.start(num_standby_replicas=1) for _ in range(2))
    for program in (lost, left):
        program.await_running()
    with WordLoad(programs.bootstrap):
        committed_counts(programs.bootstrap, "out", _FIRST)
        await_restores(left, _HALF)
        lost.end(signal.SIGKILL)
        killed = time.monotonic()
        await_restores(left, PARTITIONS)
        took_s = time.monotonic() - killed
    assert took_s <= _TAKE_OVER_S, left.log()
    # The changelogs of its tasks have half of the records.
    assert sum(left.restores()[_HALF:]) < _FIRST / 8, left.log()
    assert programs.counts() == [EACH_ONCE] * KEYS


def test_a_second_program_warms_up_and_leaves_while_records_arrive(programs: Programs) -> None:
    """One, two, one: tasks move when their state has caught up, and each record counts once."""
    options = {"acceptable_recovery_lag": 100, "max_warmup_replicas": 4}
    first = programs.start(**options)
    first.await_running()
    with WordLoad(programs.bootstrap):
        committed_counts(programs.bootstrap, "out", _FIRST)
        second = programs.start(**options)
        await_restores(second, _HALF)
        # A warm-up replica has read the changelog before the task was restored.
        assert sum(second.restores()) <= _HALF * 100, second.log()
        second.end(signal.SIGTERM)
        await_restores(first, PARTITIONS + _HALF)
    assert programs.counts() == [EACH_ONCE] * KEYS
