"""A log while a cleaned segment replaces others: events between the two syncs."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ottla.storage.log.recovery import begin_swap
from tests.unit.storage.compacted import Compacted

# The last record is in the last segment, which is not compacted.
LEFT = [(8, b"a", b"8"), (9, b"b", b"9")]


def written() -> Compacted:
    """Return a log with several dirty segments."""
    compacted = Compacted(segment_bytes=160)
    for number in range(9):
        compacted.append((b"a", b"%d" % number))
    compacted.log.rolling.roll()
    compacted.append((b"b", b"9"))
    return compacted


def clean_with(compacted: Compacted, event: Callable[[], None], *, is_first: bool) -> bool:
    """Clean; run `event` during the first or the second sync of a swap."""
    cleaner: Any = compacted.cleaner
    off_loop = cleaner._off_loop
    seen: list[object] = []

    async def off_loop_with_event(work: Any) -> Any:
        function = work.func if isinstance(work, partial) else work
        is_swap = function is begin_swap
        is_sync = function == compacted.files.sync_directory
        if (is_swap and is_first) or (is_sync and not is_first):
            seen.append(work)
            if len(seen) == 1:
                event()
        return await off_loop(work)

    cleaner._off_loop = off_loop_with_event
    result = compacted.clean()
    assert seen
    return result


def endings(compacted: Compacted) -> list[str]:
    """Return the suffixes of unfinished files."""
    return [name for name in compacted.names() if name.endswith((".swap", ".cleaned"))]


@pytest.mark.parametrize("is_first", [True, False])
def test_reads_and_appends_continue_during_a_swap(is_first: bool) -> None:
    """Every record that is kept can be read before, between and after the syncs."""
    compacted = written()

    def read() -> None:
        assert compacted.pairs()[-2:] == LEFT
        compacted.log.deletion.close_idle_files()
        assert compacted.pairs()[-2:] == LEFT
        compacted.append((b"c", b"new"))

    assert clean_with(compacted, read, is_first=is_first)
    assert compacted.pairs() == [*LEFT, (10, b"c", b"new")]
    assert not endings(compacted)
    compacted.restart(clean=True)
    assert compacted.pairs() == [*LEFT, (10, b"c", b"new")]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_log_that_is_deleted_during_a_swap_fails_no_directory(is_first: bool) -> None:
    """The log directory has another name by then."""
    compacted = written()
    clean_with(compacted, lambda: compacted.directories.delete("t", 0), is_first=is_first)
    assert not compacted.world.failures


@pytest.mark.parametrize("is_first", [True, False])
def test_a_segment_that_retention_deletes_during_a_swap_stays_deleted(is_first: bool) -> None:
    """The segment stays deleted after a restart."""
    compacted = written()
    log = compacted.log

    def delete() -> None:
        log.truncation.advance_log_start_offset(9)
        log.deletion.apply_retention(log.log_end_offset)

    clean_with(compacted, delete, is_first=is_first)
    assert compacted.pairs() == LEFT[1:]
    assert not endings(compacted)
    compacted.restart(clean=True)
    assert compacted.pairs() == LEFT[1:]
    assert compacted.log.first_segment_offset == 9


def test_a_copy_that_begins_before_the_swap_prevents_it() -> None:
    """No file of the cleaned segment is left."""
    compacted = written()

    def begin_copy() -> None:
        compacted.log.is_being_copied = True

    assert not clean_with(compacted, begin_copy, is_first=True)
    assert len(compacted.pairs()) == 10
    assert not endings(compacted)
