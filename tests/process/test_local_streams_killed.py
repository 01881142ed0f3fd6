"""Programs that run a topology are killed: exactly once, each record counts once, in order."""

import signal

from ottla.client.admin.groups import describe_group
from ottla.client.brokers import Brokers
from tests.process.broker_cluster import wait
from tests.process.streams_program import EACH_ONCE, KEYS, Programs, WordLoad

_KILLS = 3


def _await_members(bootstrap: str, count: int) -> None:
    with Brokers(bootstrap) as brokers:
        wait(lambda: len(describe_group(brokers, "app").members) == count, f"{count} members")


def test_killed_programs_lose_and_repeat_no_result(programs: Programs) -> None:
    """One of two programs is killed and started again, three times, while records arrive."""
    running = [programs.start(), programs.start()]
    for program in running:
        program.await_running()
    with WordLoad(programs.bootstrap):
        for _ in range(_KILLS):
            running.pop(0).end(signal.SIGKILL)
            running.append(programs.start())
            running[-1].await_running()
    assert programs.counts() == [EACH_ONCE] * KEYS


def test_a_program_that_was_paused_writes_nothing_of_the_tasks_that_it_has_lost(
    programs: Programs,
) -> None:
    """Its session and its transaction end while it is stopped; afterwards it takes part again."""
    running = [programs.start(), programs.start()]
    for program in running:
        program.await_running()
    with WordLoad(programs.bootstrap):
        for program in running:
            program.send(signal.SIGSTOP)
            _await_members(programs.bootstrap, 1)
            program.send(signal.SIGCONT)
            _await_members(programs.bootstrap, 2)
    assert programs.counts() == [EACH_ONCE] * KEYS
    # Neither program has failed: the paused one has joined again.
    assert all("Traceback" not in program.log() for program in running)
