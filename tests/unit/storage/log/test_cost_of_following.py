"""The processor time of an append as a follower, compared with that as the leader."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.append import TOPIC_ID, make_batch, open_directories
from ottla.storage.config import LogConfig
from ottla.storage.log.log import Log

_ROUNDS = 25
_COUNT = 40
# A noisy machine adds time to both.
_TOLERANCE = 1.3


def _seconds(
    log: Log, append: Callable[[bytearray], object], data: bytearray, *, is_follower: bool
) -> float:
    """Return the processor time of a round of appends."""
    log.truncation.truncate_fully_and_start_at(0)
    used = 0.0
    for _ in range(_COUNT):
        # A leader assigns the offset, a follower gets it in the batch.
        base_offset = log.log_end_offset if is_follower else 0
        data[:8] = base_offset.to_bytes(8, "big")
        begin = time.process_time()
        append(data)
        used += time.process_time() - begin
    return used


@pytest.mark.parametrize(("records", "value_bytes"), [(100, 1000), (900, 1000)])
def test_a_follower_uses_no_more_time_than_its_leader(
    tmp_path: Path, records: int, value_bytes: int
) -> None:
    """Both check and write whole batches, and decode no record: in their fastest rounds."""
    data = make_batch(records, value_bytes)
    directories = open_directories(tmp_path)
    log = directories.create("orders", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
    as_leader = as_follower = float("inf")
    # In turn, so that other work on the machine slows down both.
    for _ in range(_ROUNDS):
        leads = _seconds(log, lambda batch: log.append_as_leader(batch, 3), data, is_follower=False)
        as_leader = min(as_leader, leads)
        as_follower = min(
            as_follower, _seconds(log, log.append_as_follower, data, is_follower=True)
        )
    directories.close()
    print(f"leader {as_leader * 1e3:.2f} ms, follower {as_follower * 1e3:.2f} ms")
    assert as_follower <= as_leader * _TOLERANCE
