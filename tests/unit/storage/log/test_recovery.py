"""Opening a log after every kind of shutdown: what is kept, truncated and rebuilt."""

from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ApiError
from ottla.storage.files.file_names import file_name
from ottla.storage.log.log import Log
from ottla.storage.log.recovery import Truncation
from ottla.wire.records import batch
from tests.unit.storage.world import (
    START_MS,
    World,
    make_batch,
    offsets,
    read_all,
    small_segments,
)

SIZES = (3, 1, 2, 4, 1, 2)


def make_world(path: Path, **fields: Any) -> World:
    """Return a world with small segments and many index entries."""
    return World(path, **({"segment_bytes": 700, "index_interval_bytes": 80} | fields))


def fill(log: Log, sizes: tuple[int, ...] = SIZES) -> list[bytes]:
    """Append batches of an idempotent producer, in increasing epochs; return them."""
    written = []
    for number, size in enumerate(sizes):
        data = make_batch(
            size, sequence=log.log_end_offset, timestamp=START_MS + log.log_end_offset
        )
        log.append_as_leader(data, number // 2)
        written.append(bytes(data))
    return written


def is_whole(log: Log, sizes: tuple[int, ...]) -> bool:
    """Assert that the log has the expected batches and accepts an append."""
    end = sum(sizes)
    assert log.log_end_offset == end
    assert offsets(log) == list(range(end))
    firsts = [sum(sizes[:number]) for number in range(len(sizes))]
    for first in firsts:
        assert log.offset_for_timestamp(START_MS + first) == (
            START_MS + first,
            first,
            log.epochs.epoch_of(first),
        )
    for offset in range(end):
        result = log.read(offset, 1, max_offset=end)
        assert result is not None
        header = batch.parse_header(result.records)
        assert header.base_offset <= offset <= header.last_offset
    expected = {epoch // 2: firsts[epoch] for epoch in range(0, len(sizes), 2)}
    assert dict(log.epochs.entries) == expected
    if sizes:
        last = make_batch(sizes[-1], sequence=end - sizes[-1])
        again = log.append_as_leader(last, log.epochs.latest)
        assert (again.is_duplicate, again.last_offset) == (True, end - 1)
        with pytest.raises(ApiError):
            log.append_as_leader(make_batch(sequence=end + 1), log.epochs.latest)
    info = log.append_as_leader(make_batch(2, sequence=end), len(sizes))
    return info.base_offset == end


@pytest.mark.parametrize("clean", [False, True])
def test_tail_torn_at_any_byte_leaves_exactly_the_complete_batches(
    tmp_path: Path, clean: bool
) -> None:
    """The tail is torn at every byte of the last two batches, even with a clean shutdown marker."""
    world = make_world(tmp_path / "whole", segment_bytes=10_000)
    log = world.load()
    written = fill(log)
    log.close()
    path = world.folder / file_name(0, ".log")
    content = path.read_bytes()
    ends = [sum(map(len, written[:count])) for count in range(len(written) + 1)]
    for size in range(ends[-3], ends[-1]):
        torn = make_world(tmp_path / f"{size}", segment_bytes=10_000)
        torn.folder.mkdir(parents=True)
        for sidecar in world.folder.iterdir():
            (torn.folder / sidecar.name).write_bytes(sidecar.read_bytes())
        (torn.folder / path.name).write_bytes(content[:size])
        log = torn.load(clean=clean, recovery_point=sum(SIZES))
        total = sum(end <= size for end in ends) - 1
        cut = size - ends[total]
        expected = Truncation(sum(SIZES[:total]), cut) if cut else None
        assert torn.loaded.truncation == expected
        assert is_whole(log, SIZES[:total])
        log.abandon()


@pytest.mark.parametrize("tail", [b"\0" * 500, b"\xff" * 500, b"\x55" * 61, b"\0"])
def test_garbage_behind_the_last_batch_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    """File systems often leave zeros after a power loss."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log)
    log.abandon()
    path = world.folder / world.names(".log")[-1]
    path.write_bytes(path.read_bytes() + tail)
    assert is_whole(world.load(), SIZES)


def test_a_flipped_bit_in_the_tail_ends_the_log_before_that_batch(tmp_path: Path) -> None:
    """A bit is flipped in any byte under the checksum, in the checksum itself or in the format."""
    world = make_world(tmp_path / "whole", segment_bytes=10_000)
    log = world.load()
    written = fill(log)
    log.abandon()
    content = (world.folder / file_name(0, ".log")).read_bytes()
    start = len(content) - len(written[-1])
    for at in (8, 11, 16, 17, 20, *range(21, len(written[-1]))):
        broken = bytearray(content)
        broken[start + at] ^= 0x40
        torn = make_world(tmp_path / f"{at}", segment_bytes=10_000)
        torn.folder.mkdir(parents=True)
        (torn.folder / file_name(0, ".log")).write_bytes(broken)
        assert is_whole(torn.load(), SIZES[:-1])


def test_segments_behind_a_damaged_one_are_set_aside(tmp_path: Path) -> None:
    """The log ends before the damage, the result reports it, and the files can still be saved."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log, SIZES * 3)
    log.abandon()
    names = world.names(".log")
    assert len(names) >= 3
    path = world.folder / names[1]
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    path.write_bytes(data)
    log = world.load()
    truncation = world.loaded.truncation
    assert truncation is not None
    assert truncation.segments_removed == tuple(int(name[:20]) for name in names[2:])
    assert truncation.offset == log.log_end_offset == int(names[1][:20])
    assert world.names(".log") == names[:2]
    assert world.names(".log.deleted") == [f"{name}.deleted" for name in names[2:]]
    assert offsets(log) == list(range(log.log_end_offset))


def test_segments_before_the_recovery_point_are_not_scanned(tmp_path: Path) -> None:
    """Only the segment of the recovery point and later ones are scanned; the rest was durable."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log, SIZES * 3)
    bases = list(log.bases)
    log.abandon()
    world.load(recovery_point=bases[2] + 1)
    assert world.loaded.recovered == tuple(bases[2:])
    world.load(recovery_point=10**9)
    assert world.loaded.recovered == (bases[-1],)
    world.load(clean=True)
    assert world.loaded.recovered == ()


def test_recovery_does_not_advance_the_recovery_point(tmp_path: Path) -> None:
    """The recovery point stays until the next flush; after a clean shutdown it is the log end."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log)
    log.abandon()
    assert world.load(recovery_point=2).recovery_point == 2
    assert world.load(recovery_point=99).recovery_point == sum(SIZES)
    assert world.load(clean=True).recovery_point == sum(SIZES)


SIDECARS = (".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint")


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("damage", ["lose", "empty", "zeros", "garbage", "cut"])
@pytest.mark.parametrize("suffix", SIDECARS)
def test_damaged_files_beside_the_log_are_rebuilt(
    tmp_path: Path, suffix: str, damage: str, clean: bool
) -> None:
    """Reads and the checks for duplicates and gaps give the same results as before."""
    sizes = SIZES * 3
    world = make_world(tmp_path)
    log = world.load()
    fill(log, sizes)
    log.close()
    for name in world.names(suffix):
        path = world.folder / name
        content = path.read_bytes()
        if damage == "lose":
            path.unlink()
        else:
            path.write_bytes(
                {
                    "empty": b"",
                    "zeros": bytes(len(content)),
                    "garbage": b"\x9f" * len(content),
                    "cut": content[:-3],
                }[damage]
            )
    assert is_whole(world.load(clean=clean), sizes)


def test_rebuilt_files_are_reported(tmp_path: Path) -> None:
    """The result of loading lists the files that were lost or damaged."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log, SIZES * 3)
    log.close()
    first, last = world.names(".log")[0][:20], world.names(".snapshot")[-1]
    (world.folder / f"{first}.index").unlink()
    (world.folder / last).write_bytes(b"x")
    (world.folder / "leader-epoch-checkpoint").unlink()
    world.load(clean=True)
    assert set(world.loaded.rebuilt) == {
        f"{first}.index",
        f"{first}.timeindex",
        last,
        "leader-epoch-checkpoint",
    }
    assert (world.folder / f"{first}.index").exists()
    assert not (world.folder / last).exists()


def test_a_clean_start_reads_little_of_the_log(tmp_path: Path) -> None:
    """A clean start reads no sealed segment, and of the last one only the part after its last index
    entry.
    """
    world = make_world(tmp_path, segment_bytes=50_000, index_interval_bytes=4096)
    log = world.load()
    for number in range(60):
        log.append_as_leader(make_batch([b"x" * 2000], timestamp=START_MS + number), 0)
    log.close()
    reads: list[int] = []
    original = world.files.open

    def opening(path: str, *, create: bool = False) -> Any:
        file = original(path, create=create)
        read_at = file.read_at

        class Counting:
            def read_at(self, position: int, size_bytes: int) -> bytes:
                reads.append(size_bytes)
                return read_at(position, size_bytes)

            def close(self) -> None:
                file.close()

        return Counting()

    world.files.open = opening  # type: ignore[method-assign]
    loaded = world.load(clean=True)
    assert loaded.segments_count > 2
    assert sum(reads) < 120_000


def test_duplicates_of_the_last_five_batches_are_detected_after_a_clean_restart(
    tmp_path: Path,
) -> None:
    """A snapshot has one batch for each producer; the others are read from the log."""
    world = make_world(tmp_path)
    log = world.load()
    for number in range(12):
        log.append_as_leader(make_batch(2, sequence=number * 2), 0)
    log.close()
    log = world.load(clean=True)
    for number in range(7, 12):
        info = log.append_as_leader(make_batch(2, sequence=number * 2), 0)
        assert (info.is_duplicate, info.base_offset) == (True, number * 2)


def test_log_that_ends_before_its_start_is_emptied(tmp_path: Path) -> None:
    """If segment files were removed, offsets before the log start are never assigned again."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log)
    log.abandon()
    log = world.load(log_start=500)
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)
    assert log.append_as_leader(make_batch(), 9).base_offset == 500


def test_log_start_comes_from_the_checkpoint(tmp_path: Path) -> None:
    """If the first segment begins later than the checkpoint says, its base offset is the log start."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log, SIZES * 3)
    log.abandon()
    assert world.load(log_start=2).log_start_offset == 2
    (world.folder / world.names(".log")[0]).unlink()
    first = int(world.names(".log")[0][:20])
    log = world.load(log_start=2)
    assert log.log_start_offset == first
    assert read_all(log)[0].offset == first


def test_an_index_without_a_log_is_removed(tmp_path: Path) -> None:
    """An index without a log file belongs to no segment."""
    world = make_world(tmp_path)
    world.load().abandon()
    orphan = world.folder / file_name(77, ".timeindex")
    orphan.write_bytes(b"")
    world.load()
    assert not orphan.exists()


def test_a_directory_without_segments_is_an_empty_log(tmp_path: Path) -> None:
    """A crash right after the directory was created leaves no segments."""
    world = make_world(tmp_path)
    world.folder.mkdir(parents=True)
    log = world.load(log_start=7)
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)


def test_deleted_and_temporary_files_are_removed(tmp_path: Path) -> None:
    """Deleted and temporary files were to be removed when the process ended."""
    world = make_world(tmp_path)
    world.load().abandon()
    for name in (file_name(5, ".log.deleted"), "leader-epoch-checkpoint.tmp", "x.cleaned"):
        (world.folder / name).write_bytes(b"x")
    world.load()
    assert sorted(path.name for path in world.folder.iterdir()) == [file_name(0, ".log")]


@pytest.mark.parametrize("unfinished", [False, True])
def test_interrupted_swap_of_segments_is_completed_or_undone(
    tmp_path: Path, unfinished: bool
) -> None:
    """A `.swap` file is complete; if a `.cleaned` file exists beside it, it was part of a split."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log, SIZES * 3)
    log.abandon()
    names = world.names(".log")
    content = (world.folder / names[1]).read_bytes()
    swap = world.folder / f"{names[1]}.swap"
    swap.write_bytes(content)
    (world.folder / names[1]).write_bytes(
        content[: len(content) // 2] if not unfinished else content
    )
    if unfinished:
        (world.folder / f"{names[1]}.cleaned").write_bytes(b"")
    log = world.load()
    assert offsets(log) == list(range(sum(SIZES) * 3))
    assert not swap.exists()
    assert world.names(".log") == names


def test_leader_epochs_of_the_tail_are_read_from_the_log(tmp_path: Path) -> None:
    """Epochs are checkpointed by a flush; after a crash the later ones are read from the log."""
    world = make_world(tmp_path)
    log = world.load()
    fill(log, SIZES[:2])
    log.durability.flush()
    fill_more = make_batch(1)
    log.append_as_leader(fill_more, 7)
    end = log.log_end_offset
    log.abandon()
    log = world.load(recovery_point=end - 1)
    assert log.epochs.entries == [(0, 0), (7, end - 1)]


def test_epoch_checkpoint_of_another_log_is_rebuilt(tmp_path: Path) -> None:
    """If the checkpoint contradicts the first or the last batch, the epochs are rebuilt from the
    log.
    """
    world = make_world(tmp_path)
    log = world.load()
    fill(log)
    log.close()
    expected = list(log.epochs.entries)
    for wrong in (b"0\n1\n5 0\n", b"0\n1\n0 3\n", b"0\n2\n0 0\n9 2\n"):
        (world.folder / "leader-epoch-checkpoint").write_bytes(wrong)
        log = world.load(clean=True)
        assert log.epochs.entries == expected
        assert world.loaded.rebuilt == ("leader-epoch-checkpoint",)
        log.abandon()


@pytest.mark.parametrize("start", [1, 7, 12, 39, 40])
def test_a_clean_start_after_delete_records_reads_no_headers_again(
    tmp_path: Path, start: int
) -> None:
    """The leader epochs begin at the log start, which may be inside any segment."""
    world = small_segments(tmp_path)
    log = world.load()
    for number in range(40):
        log.append_as_leader(make_batch(), number // 9)
    log.truncation.advance_log_start_offset(start)
    epochs = list(log.epochs.entries)
    log.close()
    again = world.load(clean=True, log_start=start)
    assert world.loaded.rebuilt == ()
    assert again.epochs.entries == [entry for entry in epochs if entry[1] < 40]
    assert again.log_start_offset == start


def test_epochs_that_disagree_with_the_batch_at_the_log_start_are_rebuilt(tmp_path: Path) -> None:
    """The batch at the log start need not be the first of a segment."""
    world = small_segments(tmp_path)
    log = world.load()
    for number in range(40):
        log.append_as_leader(make_batch(), number // 20)
    log.truncation.advance_log_start_offset(7)
    log.close()
    (world.folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n1 20\n")
    again = world.load(clean=True, log_start=7)
    assert world.loaded.rebuilt == ("leader-epoch-checkpoint",)
    assert again.epochs.entries == [(0, 7), (1, 20)]
