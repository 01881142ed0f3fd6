"""Reads that continue behind damaged bytes."""

from collections.abc import Iterator

import pytest

from ottla.storage.files.sound import Extent, SoundBatches, read_batches
from ottla.wire.records import batch
from ottla.wire.records.records import Record, decode_batch, encode_batch

BASE = 1000
COUNT = 12


def segment(gap_after: int = -1) -> list[bytearray]:
    """Return batches of two records each, with a gap, as compaction leaves it, after one of them."""
    batches, offset = [], BASE
    for number in range(COUNT):
        records = [Record(b"k", b"%d" % value) for value in (2 * number, 2 * number + 1)]
        encoded = encode_batch(records)
        batch.patch_offset_and_epoch(encoded, 0, offset, 0)
        batches.append(encoded)
        offset += 500 if number == gap_after else 2
    return batches


def read_all(data: bytes, end_offset: int, max_bytes: int) -> Iterator[SoundBatches]:
    """Read a segment call by call."""
    extent, offset = Extent(BASE, end_offset, len(data)), BASE
    while offset < end_offset:
        sound = read_batches(
            lambda position, size: data[position : position + size], extent, offset, max_bytes
        )
        assert sound.next_offset > offset
        offset = sound.next_offset
        yield sound


def values(reads: list[SoundBatches]) -> list[int]:
    """Return the values of the records that were read."""
    return [
        int(record.value or b"")
        for sound in reads
        for header, data in sound.batches
        for record in decode_batch(data, header=header)
    ]


@pytest.mark.parametrize("max_bytes", [1, 200, 1 << 20])
@pytest.mark.parametrize("gap_after", [-1, 5])
def test_undamaged_batches_are_read_once_each(max_bytes: int, gap_after: int) -> None:
    """Reads of any size return every batch once, in order, also across a gap."""
    data = b"".join(segment(gap_after))
    end_offset = batch.end_offset(data)
    reads = list(read_all(data, end_offset, max_bytes))
    assert values(reads) == list(range(2 * COUNT))
    assert not any(sound.skipped or sound.damaged_at >= 0 for sound in reads)


@pytest.mark.parametrize("max_bytes", [1, 200, 1 << 20])
@pytest.mark.parametrize("number", [0, 1, 5, 6, 10, COUNT - 1])
def test_no_flipped_bit_of_a_header_hides_other_batches(number: int, max_bytes: int) -> None:
    """All other batches are read; the damaged one is read too, or counted as skipped.

    Near a wrong offset, batches may be read again before reading continues.
    """
    batches = segment()
    end_offset = batch.end_offset(b"".join(batches))
    position = sum(map(len, batches[:number]))
    others = [value for value in range(2 * COUNT) if value // 2 != number]
    for bit in range(8 * batch.HEADER_SIZE):
        data = bytearray(b"".join(batches))
        data[position + bit // 8] ^= 1 << bit % 8
        reads = list(read_all(bytes(data), end_offset, max_bytes))
        # Each value at the place where it was read last.
        read = list(dict.fromkeys(reversed(values(reads))))[::-1]
        skipped = [skip for sound in reads for skip in sound.skipped]
        if read == others:
            assert [skip.records_count for skip in skipped] == [2], bit
            assert {sound.damaged_at for sound in reads} >= {position}, bit
        else:
            assert read == list(range(2 * COUNT)), bit
            assert not skipped, bit


def test_damage_larger_than_a_batch_is_skipped() -> None:
    """Reading continues with the first whole batch behind zeros that cover several."""
    batches = segment()
    data = bytearray(b"".join(batches))
    first, last = sum(map(len, batches[:3])) + 30, sum(map(len, batches[:6])) + 30
    data[first:last] = bytes(last - first)
    reads = list(read_all(bytes(data), BASE + 2 * COUNT, 1 << 20))
    assert values(reads) == [*range(6), *range(14, 2 * COUNT)]
    assert [skip for sound in reads for skip in sound.skipped] == [(BASE + 6, 8)]


def test_damaged_batch_before_a_gap_counts_only_its_own_records() -> None:
    """Offsets that compaction has removed are not lost records."""
    batches = segment(gap_after=5)
    batches[5][-1] ^= 0xFF
    data = b"".join(batches)
    (sound,) = read_all(data, batch.end_offset(data), 1 << 20)
    assert sound.skipped == [(BASE + 10, 2)]


def test_a_segment_of_damaged_bytes_is_skipped() -> None:
    """The next read begins at the next segment."""
    (sound,) = read_all(bytes(500), BASE + 9, 100)
    assert sound == SoundBatches([], BASE + 9, [(BASE, 9)], 0)
