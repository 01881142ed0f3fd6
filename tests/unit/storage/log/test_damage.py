"""Flipped bits and lost files: which reads still succeed, and which are rejected.

Scenarios 9 and 10 of the reliability tests, for one log. Durable bytes of the log are never deleted
because of damage before them; the files beside the log are rebuilt or rejected.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.storage.files import checkpoints
from ottla.storage.log.log import Log
from ottla.wire.records import batch, control
from ottla.wire.records.batch import HEADER_SIZE
from tests.unit.storage.world import START_MS, TOPIC_ID, World, make_batch, offsets, small_segments

pytestmark = pytest.mark.slow

COUNT = 40


def fill(log: Log) -> None:
    """Write with five producers in turn, some of them transactional, in three leader epochs."""
    for number in range(COUNT):
        epoch = number // 15
        producer_id = number % 5
        sequence = number // 5
        is_transactional = producer_id >= 3
        data = make_batch(
            [b"value-%d" % number],
            timestamp=START_MS + (number * 7919) % 1000,
            sequence=sequence,
            producer_id=producer_id,
            transactional=is_transactional,
        )
        log.append_as_leader(data, epoch)
        if is_transactional and (number < COUNT - 5 or producer_id == 3):
            kind = control.ControlType.COMMIT if sequence % 2 else control.ControlType.ABORT
            marker = control.encode_marker(
                control.EndTransactionMarker(kind, 0),
                producer_id=producer_id,
                producer_epoch=0,
                timestamp=START_MS,
            )
            log.append_as_leader(marker, epoch, from_client=False)


class Answers(NamedTuple):
    """Everything that clients can read from a log."""

    records: list[int]
    by_time: list[Any]
    newest: Any
    epoch_ends: list[Any]
    aborted: list[Any]
    stable_offset: int
    ends: tuple[int, int]
    duplicates: list[Any]


def ask(log: Log) -> Answers:
    """Read all of it from the log."""
    duplicates = []
    for producer_id in range(5):
        last = COUNT // 5 - 1
        data = make_batch(
            [b"value-%d" % (COUNT - 5 + producer_id)],
            timestamp=START_MS + ((COUNT - 5 + producer_id) * 7919) % 1000,
            sequence=last,
            producer_id=producer_id,
            transactional=producer_id >= 3,
        )
        info = log.append_as_leader(data, 2)
        assert info.is_duplicate
        duplicates.append((info.base_offset, info.last_offset))
    end = log.log_end_offset
    return Answers(
        offsets(log),
        [log.offset_for_timestamp(START_MS + time) for time in range(0, 1001, 25)],
        log.offset_of_max_timestamp(),
        [log.end_offset_for_epoch(epoch) for epoch in range(-1, 5)],
        [log.aborted_transactions(start, end) for start in range(0, end, 3)],
        log.last_stable_offset(end),
        (log.log_start_offset, end),
        duplicates,
    )


def world_with_log(folder: Path, **fields: Any) -> tuple[World, Answers]:
    """Return a world whose log was closed cleanly, and its results."""
    world = small_segments(folder, **fields)
    log = world.load()
    fill(log)
    log.high_watermark = log.log_end_offset
    assert log.segments_count > 8
    responses = ask(log)
    log.close()
    return world, responses


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "lost": lambda content: None,
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "ones": lambda content: b"\xff" * len(content),
    "half": lambda content: content[: len(content) // 2],
    "cut": lambda content: content[:-1],
    "longer": lambda content: content + b"\x01" * 7,
    "first bit": lambda content: bytes([content[0] ^ 0x80]) + content[1:],
    "last bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "text": lambda content: b"not what you expect\n" * (len(content) // 20 + 1),
}
BESIDE = (".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint")
# A lost transaction index looks like the index of a segment without aborted transactions, as in
# Kafka. Half of one may end between two entries.
UNDETECTED = {(".txnindex", "lost"), (".txnindex", "half")}
# Only the last stable offset of an entry, which says where a search may stop; no checksum covers
# it.
UNDETECTED |= {(".txnindex", "last bit")}


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", BESIDE)
def test_damage_of_files_beside_the_log_changes_no_answer(
    tmp_path: Path, suffix: str, damage: str, clean: bool
) -> None:
    """Records, times, epochs, aborted transactions and duplicates are rebuilt from the log."""
    world, responses = world_with_log(tmp_path)
    names = world.names(suffix)
    assert names
    for name in names:
        path = world.folder / name
        content = DAMAGES[damage](path.read_bytes())
        path.unlink() if content is None else path.write_bytes(content)
    log = world.load(clean=clean)
    if clean and (suffix, damage) in UNDETECTED:
        assert offsets(log) == responses.records
        return
    assert ask(log) == responses
    log.close()
    assert ask(world.load(clean=True)) == responses


@pytest.mark.parametrize("clean", [False, True])
def test_all_files_beside_the_log_may_be_lost_at_once(tmp_path: Path, clean: bool) -> None:
    """The segments alone restore the log; after an unclean shutdown also its aborted transactions."""
    world, responses = world_with_log(tmp_path)
    for path in world.folder.iterdir():
        if path.suffix != ".log":
            path.unlink()
    answers_now = ask(world.load(clean=clean))
    assert answers_now == (
        responses if not clean else responses._replace(aborted=answers_now.aborted)
    )


@pytest.mark.parametrize("name", [*(f"{name}" for name in (
    checkpoints.RECOVERY_POINT_FILE,
    checkpoints.HIGH_WATERMARK_FILE,
    checkpoints.LOG_START_FILE,
    checkpoints.CLEANER_FILE,
    "t-0/" + checkpoints.PARTITION_METADATA_FILE,
))])  # fmt: skip
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("clean", [False, True])
def test_damage_of_a_checkpoint_changes_no_answer(
    tmp_path: Path, name: str, damage: str, clean: bool
) -> None:
    """The directory opens and the log is complete; unknown values are computed or sent again."""
    world = small_segments(tmp_path)
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, world.config)
    fill(log)
    responses = ask(log)
    directories.store_high_watermarks({("t", 0): log.log_end_offset})
    directories.close() if clean else directories.checkpoint()
    directories.abandon()
    path = tmp_path / name
    if path.exists():
        content = DAMAGES[damage](path.read_bytes())
        path.unlink() if content is None else path.write_bytes(content)
    directories = world.directories()
    # The controller sends the topic's id at every start.
    copy = directories.get("t", 0)
    assert copy is not None
    if name.startswith("t-0/") and copy.topic_id not in (TOPIC_ID, bytes(16)):
        with pytest.raises(ApiError) as refused:
            directories.create("t", 0, TOPIC_ID, world.config)
        assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    else:
        assert directories.create("t", 0, TOPIC_ID, world.config) is copy
        assert copy.topic_id == TOPIC_ID
    assert ask(copy) == responses
    directories.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_meta_properties_are_rejected_or_rewritten(tmp_path: Path, damage: str) -> None:
    """Damage of meta.properties neither takes over another broker's data nor deletes any."""
    world = small_segments(tmp_path)
    directories = world.directories()
    fill(directories.create("t", 0, TOPIC_ID, world.config))
    directories.close()
    path = tmp_path / checkpoints.META_PROPERTIES_FILE
    content = DAMAGES[damage](path.read_bytes())
    path.unlink() if content is None else path.write_bytes(content)
    before = {file.name: file.read_bytes() for file in (tmp_path / "t-0").iterdir()}
    try:
        directories = world.directories()
    except ConfigError as refused:
        assert str(tmp_path) in str(refused)
        assert {file.name: file.read_bytes() for file in (tmp_path / "t-0").iterdir()} == before
        return
    log = directories.get("t", 0)
    assert log is not None
    assert log.log_end_offset > COUNT
    directories.close()


# Scenario 9: flipped bits in the log itself


def sealed_batch(world: World, at: int) -> tuple[Path, int, batch.BatchHeader]:
    """Return the position of a batch in a sealed segment: file, position and header."""
    path = world.folder / world.names(".log")[3]
    data, position = path.read_bytes(), 0
    for _ in range(at):
        position += batch.peek_size(data, position)
    return path, position, batch.parse_header(data, position)


def flip(path: Path, position: int, mask: int = 0x40) -> None:
    """Flip bits of one byte."""
    data = bytearray(path.read_bytes())
    data[position] ^= mask
    path.write_bytes(data)


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("field", [8, 16, 23])
def test_damaged_header_fails_the_read_and_is_not_skipped(
    tmp_path: Path, field: int, indexed: bool, running: bool
) -> None:
    """Later reads in the segment fail with CORRUPT_MESSAGE, so that no consumer skips records
    unnoticed.
    """
    world, _ = world_with_log(tmp_path, index_interval_bytes=100 if indexed else 10_000)
    path, position, header = sealed_batch(world, 2)
    if running:
        log = world.load(clean=True)
        flip(path, position + field, 0x80)
    else:
        flip(path, position + field, 0x80)
        log = world.load(clean=True)
    sealed = sorted(file.name for file in world.folder.iterdir() if file.suffix == ".log")
    start = int(path.name[:20])
    whole = log.read(start, 1 << 20, max_offset=log.log_end_offset)
    assert whole is not None
    assert batch.end_offset(whole.records[:position]) == header.base_offset
    with pytest.raises(ApiError) as refused:
        log.read(header.base_offset, 1 << 20, max_offset=log.log_end_offset)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.failure is None
    behind = int(world.names(".log")[4][:20])
    assert log.read(behind, 1 << 20, max_offset=log.log_end_offset) is not None
    log.close()
    assert world.names(".log") == sealed, "no later segment is deleted for it"


@pytest.mark.parametrize("field", [17, 21, 30, HEADER_SIZE + 3])
def test_batch_with_a_wrong_checksum_is_returned_to_the_consumer(
    tmp_path: Path, field: int
) -> None:
    """The batch is returned with its wrong checksum and the consumer's client rejects it, as in
    Kafka.
    """
    world, _ = world_with_log(tmp_path)
    path, position, header = sealed_batch(world, 1)
    flip(path, position + field)
    log = world.load(clean=True)
    result = log.read(header.base_offset, 1, max_offset=log.log_end_offset)
    assert result is not None
    assert not batch.is_crc_valid(result.records, 0, batch.parse_header(result.records))


def test_recovery_keeps_durable_records_behind_damage(tmp_path: Path) -> None:
    """Recovery neither verifies nor truncates anything before the recovery point."""
    world, responses = world_with_log(tmp_path)
    path, position, _ = sealed_batch(world, 1)
    flip(path, position + HEADER_SIZE + 3)
    names = world.names(".log")
    log = world.load(recovery_point=responses.ends[1])
    assert world.loaded.truncation is None
    assert world.names(".log") == names
    assert log.log_end_offset == responses.ends[1]


@pytest.mark.parametrize("segment", [0, 3])
@pytest.mark.parametrize("position", [0, 8, 11, 16, 20, 60])
def test_read_sound_continues_behind_damage(tmp_path: Path, segment: int, position: int) -> None:
    """All batches but the damaged one are returned, also batches of later segments, and the damage
    is reported.
    """
    world = small_segments(tmp_path)
    log = world.load()
    for _ in range(40):
        log.append_as_leader(make_batch(), 0)
    log.close()
    path = world.folder / world.names(".log")[segment]
    size = len(make_batch())
    data = bytearray(path.read_bytes())
    data[size + position] ^= 0x40
    path.write_bytes(data)
    damaged = int(path.name[:20]) + 1
    log = world.load(clean=True)
    positions, skipped, offset = [], [], 0
    while offset < log.log_end_offset:
        sound = log.read_sound(offset, 100)
        positions += [header.base_offset for header, _ in sound.batches]
        skipped += sound.skipped
        assert sound.next_offset > offset
        offset = sound.next_offset
    others = [number for number in range(40) if number != damaged]
    assert [number for number in dict.fromkeys(positions) if number in others] == others
    assert log.damage is not None
    assert skipped == ([] if position == 0 else [(damaged, 1)])
