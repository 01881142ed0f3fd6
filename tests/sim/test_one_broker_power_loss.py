"""One broker on virtual time that loses power, whose disk fails, whose clock jumps: acknowledged
data is kept.

`OTTLA_SIM_SEEDS` is the number of seeds (default 12), `OTTLA_SIM_FIRST_SEED` the first of them;
`make test` runs a few of them. Replay a seed with `python -m tests.sim.one_broker SEED on|off`.
"""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from ottla.replication.partition import Partition
from ottla.storage.directories.disk import LogDirectories
from ottla.testing.sim.files import SimFile

from .one_broker import simulate

pytestmark = pytest.mark.slow

FIRST_SEED = int(os.environ.get("OTTLA_SIM_FIRST_SEED", "1"))
QUICK_SEEDS = 5
# Each seed of a test looks for the same faults: the seeds of `make test` find the planted ones,
# too.
_LATER = pytest.mark.nightly(f"[{FIRST_SEED}]")
SEEDS = [
    pytest.param(FIRST_SEED + number, marks=[_LATER] * (number >= QUICK_SEEDS))
    for number in range(int(os.environ.get("OTTLA_SIM_SEEDS", "12")))
]


@pytest.mark.parametrize("seed", SEEDS)
def test_with_flush_on_ack_nothing_acknowledged_is_lost(seed: int) -> None:
    """Acknowledged records, topics and committed offsets exist after every power loss."""
    scenario, violations = simulate(seed, flush_on_ack=True)
    assert not violations, f"seed {seed}: " + "; ".join(map(str, violations[:5]))
    assert len(scenario.history.reads) > 100
    assert scenario.history.life > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_without_flush_on_ack_only_the_last_records_of_a_run_are_lost(seed: int) -> None:
    """There is no gap and no wrong value in a leader epoch, and no record is lost that was read
    after a restart.
    """
    scenario, violations = simulate(seed, flush_on_ack=False)
    assert not violations, f"seed {seed}: " + "; ".join(map(str, violations[:5]))
    assert len(scenario.history.reads) > 100


def test_a_seed_gives_the_same_trace_in_every_process() -> None:
    """Every step, and every byte on the wire and on the disk, is independent of the process's hash
    seed.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.sim.one_broker", "5"],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("0", "1")
    ]
    outputs = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(outputs) == 1
    assert len(outputs.pop().split()[0]) == 32


def _acknowledges_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "is_acknowledged", lambda self, acks, offset: True)


def _never_syncs_records(monkeypatch: pytest.MonkeyPatch) -> None:
    sync = SimFile.sync
    monkeypatch.setattr(
        SimFile, "sync", lambda self: None if self.path.endswith(".log") else sync(self)
    )


def _keeps_what_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both the recovery and the check of the last segment cut damaged bytes, so that skipping one of
    # them alone is hardly ever noticed.
    monkeypatch.setattr("ottla.storage.log.segment.Segment.cut", lambda self, position: None)


def _deletes_in_memory_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def settle_nothing(self: LogDirectories) -> None:
        pass

    monkeypatch.setattr(LogDirectories, "settle_deletions", lambda self: None)
    monkeypatch.setattr(LogDirectories, "settle_deletions_in_background", settle_nothing)
    monkeypatch.setattr(
        "ottla.storage.files.checkpoints.load_topic_id", lambda files, folder: bytes(16)
    )


def _reuses_leader_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Partition.append_as_leader

    def append_in_epoch_zero(self: Partition, *arguments: object, **options: object) -> object:
        epoch, self.leader_epoch = self.leader_epoch, 0
        try:
            return append(self, *arguments, **options)  # type: ignore[arg-type]
        finally:
            self.leader_epoch = epoch

    monkeypatch.setattr(Partition, "append_as_leader", append_in_epoch_zero)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "flush_on_ack", "first"),
    [
        # The first seeds that notice: earlier ones only take time.
        (_acknowledges_at_once, True, 3),
        (_never_syncs_records, True, 1),
        (_keeps_what_is_damaged, True, 4),
        (_deletes_in_memory_only, True, 11),
        (_reuses_leader_epochs, False, 1),
    ],
    ids=lambda item: getattr(item, "__name__", str(item)).strip("_"),
)
def test_planted_faults_are_found(
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    flush_on_ack: bool,
    first: int,
) -> None:
    """A broker with a known bug fails within a few dozen seeds."""
    plant(monkeypatch)
    seeds = range(first, first + 60)
    noticed = any(_is_noticed(seed, flush_on_ack=flush_on_ack) for seed in seeds)
    assert noticed, f"seeds {seeds.start} to {seeds.stop - 1}, and the simulation noticed nothing"


def _is_noticed(seed: int, *, flush_on_ack: bool) -> bool:
    try:
        _, violations = simulate(seed, flush_on_ack=flush_on_ack)
    except (AssertionError, ExceptionGroup):
        return True
    return bool(violations)
