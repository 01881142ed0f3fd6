"""The producer state of a log: duplicates, gaps, epochs, transactions and snapshots."""

from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.storage.log.producers import BATCHES_KEPT, ProducerState
from ottla.wire.records import batch, control
from ottla.wire.records.batch import BatchHeader
from tests.unit.storage.world import START_MS, make_batch

ABORT = control.EndTransactionMarker(control.ControlType.ABORT, 5)
COMMIT = control.EndTransactionMarker(control.ControlType.COMMIT, 5)


def header_of(sequence: int, count: int = 1, **fields: Any) -> BatchHeader:
    """Return the header of a batch of producer 7."""
    return batch.parse_header(make_batch(count, sequence=sequence, **fields))


class Written:
    """Producer state that is updated with a log, batch by batch."""

    def __init__(self) -> None:
        self.state = ProducerState()
        self.end = 0

    def write(self, sequence: int, count: int = 1, **fields: Any) -> None:
        """Check a batch and update the state."""
        header = header_of(sequence, count, **fields)
        assert self.state.check(header) is None
        self.state.note(header, self.end, None, START_MS)
        self.end += count

    def end_transaction(self, marker: control.EndTransactionMarker, **fields: Any) -> Any:
        """Add a marker of producer 7 to the state."""
        producer = {"producer_id": 7, "producer_epoch": 0, "timestamp": START_MS} | fields
        header = batch.parse_header(control.encode_marker(marker, **producer))
        ended = self.state.note(header, self.end, marker, START_MS)
        self.end += 1
        return ended

    def refusal(self, sequence: int, **fields: Any) -> ErrorCode:
        """Return the error code for a batch that is rejected."""
        with pytest.raises(ApiError) as error:
            self.state.check(header_of(sequence, **fields))
        return error.value.code


def test_unknown_producer_may_begin_with_any_sequence() -> None:
    """Its state may have been removed with deleted records."""
    assert ProducerState().check(header_of(1234)) is None


def test_unknown_producer_may_have_to_begin_with_zero() -> None:
    """While an earlier batch may still arrive, a producer without state begins with 0."""
    state = ProducerState()
    with pytest.raises(ApiError) as error:
        state.check(header_of(1234), must_begin=True)
    assert error.value.code is ErrorCode.UNKNOWN_PRODUCER_ID
    assert state.check(header_of(0), must_begin=True) is None


def test_sequence_numbers_follow_one_another() -> None:
    """The next batch begins after the last sequence number; any other one is a gap."""
    written = Written()
    written.write(0, 3)
    written.write(3, 2)
    assert written.refusal(6) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    written.write(5)


def test_duplicates_of_the_last_batches_are_detected() -> None:
    """A repeated batch returns its first offsets; an older one is out of order."""
    written = Written()
    for number in range(2 + BATCHES_KEPT):
        written.write(number * 2, 2)
    for number in range(2, 2 + BATCHES_KEPT):
        again = written.state.check(header_of(number * 2, 2))
        assert again is not None
        assert (again.base_offset, again.last_offset) == (number * 2, number * 2 + 1)
    assert written.refusal(2, count=2) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batches_in_flight_are_duplicates_behind_new_ones() -> None:
    """A Java producer has five batches in flight to a leader that is cut off, and sends five new
    ones to its successor, which has the first ones, before it repeats those.

    In Kafka the first one is out of order, until the producer gives up.
    """
    written = Written()
    for number in range(10):
        written.write(number)
    for number in range(5):
        duplicate = written.state.check(header_of(number))
        assert duplicate is not None
        assert duplicate.base_offset == number


def test_batch_with_another_sequence_range_is_no_duplicate() -> None:
    """A duplicate has both the same first and the same last sequence number."""
    written = Written()
    written.write(0, 4)
    assert written.refusal(0, count=3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert written.refusal(1, count=3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequence_numbers_wrap_around() -> None:
    """The sequence number after 2**31 - 1 is 0, between batches and inside one."""
    written = Written()
    written.write(2**31 - 3, 3)
    written.write(0)
    other = Written()
    other.write(2**31 - 1, 2)
    again = other.state.check(header_of(2**31 - 1, 2))
    assert again is not None
    assert (again.base_sequence, again.last_sequence) == (2**31 - 1, 0)
    other.write(1)


def test_a_new_epoch_begins_with_zero() -> None:
    """A new epoch fences the old one, whose sequence numbers no longer count."""
    written = Written()
    written.write(0, 5)
    assert written.refusal(5, producer_epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    written.write(0, producer_epoch=1)
    assert written.refusal(5) == ErrorCode.INVALID_PRODUCER_EPOCH
    written.write(1, producer_epoch=1)


def test_coordinators_write_without_sequence_numbers() -> None:
    """Only the epoch is checked, and the producer's own sequence continues."""
    written = Written()
    written.write(0, producer_epoch=1, transactional=True)
    fields = {"producer_id": 7, "transactional": True}
    header = batch.parse_header(make_batch(2, producer_epoch=1, **fields))
    assert written.state.check(header) is None
    old = batch.parse_header(make_batch(2, producer_epoch=0, **fields))
    with pytest.raises(ApiError) as error:
        written.state.check(old)
    assert error.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_have_separate_sequences() -> None:
    """Each producer id has its own sequence."""
    written = Written()
    written.write(0, 2)
    written.write(0, producer_id=8)
    written.write(2)
    written.write(1, producer_id=8)
    last = {
        key: producer.batches[-1].last_sequence for key, producer in written.state.producers.items()
    }
    assert last == {7: 2, 8: 1}


def test_a_transaction_is_open_from_its_first_record_to_its_marker() -> None:
    """Its first offset is unstable until its marker is replicated."""
    written = Written()
    written.write(0)
    assert written.state.first_unstable_offset() is None
    written.write(1, 2, transactional=True)
    written.write(3, transactional=True)
    assert written.state.first_unstable_offset() == 1
    ended = written.end_transaction(COMMIT)
    assert ended == (7, 1, 4, False)
    assert written.state.first_unstable_offset() == 1
    written.state.decide_up_to(4)
    assert written.state.first_unstable_offset() == 1
    written.state.decide_up_to(5)
    assert written.state.first_unstable_offset() is None


def test_index_entry_has_the_last_stable_offset_at_its_marker() -> None:
    """The stable offset is the start of the next open transaction, or the offset after the marker."""
    written = Written()
    written.write(0, transactional=True)
    written.write(0, producer_id=8, transactional=True)
    first = written.end_transaction(ABORT)
    assert written.state.index_entry(first) == (7, 0, 2, 1)
    second = written.end_transaction(ABORT, producer_id=8)
    assert written.state.index_entry(second) == (8, 1, 3, 4)


def test_records_outside_an_open_transaction_are_rejected() -> None:
    """A producer with an open transaction has to write inside it."""
    written = Written()
    written.write(0, transactional=True)
    assert written.refusal(1) == ErrorCode.INVALID_TXN_STATE


def test_a_marker_without_a_transaction_ends_nothing() -> None:
    """A marker without a transaction is accepted, because the producer may have written nothing
    here.
    """
    written = Written()
    assert written.end_transaction(ABORT) is None
    written.write(0, transactional=True)


def test_a_marker_may_bring_a_new_epoch() -> None:
    """A coordinator fences the producer with a marker, and the next batch begins with sequence 0."""
    written = Written()
    written.write(0, 3, transactional=True)
    written.end_transaction(ABORT, producer_epoch=1)
    assert written.refusal(3, transactional=True) == ErrorCode.INVALID_PRODUCER_EPOCH
    written.write(0, producer_epoch=1, transactional=True)


def test_stale_markers_are_rejected() -> None:
    """A marker of an older producer epoch or of a replaced coordinator is rejected."""
    written = Written()
    written.write(0, producer_epoch=2)
    written.end_transaction(COMMIT, producer_epoch=2)
    old = batch.parse_header(
        control.encode_marker(COMMIT, producer_id=7, producer_epoch=1, timestamp=START_MS)
    )
    with pytest.raises(ApiError) as error:
        written.state.check_marker(old, COMMIT)
    assert error.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    current = old._replace(producer_epoch=2)
    written.state.check_marker(current, COMMIT)
    with pytest.raises(ApiError) as error:
        written.state.check_marker(current, COMMIT._replace(coordinator_epoch=4))
    assert error.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_idle_producers_expire() -> None:
    """Producers expire by the time of their last write, not by record time, unless a transaction is
    open.
    """
    written = Written()
    written.write(0, timestamp=1000)
    written.write(0, producer_id=8, transactional=True)
    assert written.state.remove_expired(START_MS + 999, 1000) == 0
    assert written.state.remove_expired(START_MS + 1000, 1000) == 1
    assert list(written.state.producers) == [8]


def test_a_snapshot_is_kafkas_file() -> None:
    """A snapshot has version 1, a checksum, a count, and 46 bytes for each producer."""
    written = Written()
    written.write(0, 3, transactional=True)
    written.write(0, producer_id=8, producer_epoch=4)
    data = written.state.encode_snapshot()
    assert len(data) == 10 + 2 * 46
    assert data[:2].hex() == "0001"
    assert data[6:10].hex() == "00000002"
    entry = data[10:56]
    assert int.from_bytes(entry[:8], "big") == 7
    assert int.from_bytes(entry[10:14], "big") == 2
    assert int.from_bytes(entry[14:22], "big") == 2
    assert int.from_bytes(entry[22:26], "big") == 2
    assert int.from_bytes(entry[26:34], "big") == START_MS


def test_loaded_snapshot_restores_the_producer_state() -> None:
    """A snapshot restores sequence numbers, epochs, open transactions and the last batch for
    duplicates.
    """
    written = Written()
    written.write(0, 3)
    written.write(3, 2, transactional=True)
    written.write(0, producer_id=8, producer_epoch=4)
    state = ProducerState.decode_snapshot(written.state.encode_snapshot(), 6)
    assert state is not None
    assert state.end_offset == 6
    assert state.first_unstable_offset() == 3
    assert state.check(header_of(3, 2, transactional=True)) is not None
    assert state.check(header_of(5, transactional=True)) is None
    assert state.check(header_of(1, producer_id=8, producer_epoch=4)) is None
    with pytest.raises(ApiError):
        state.check(header_of(6, transactional=True))


def test_damaged_snapshot_is_detected() -> None:
    """Loading rejects a snapshot with a flipped or missing byte."""
    written = Written()
    written.write(0, 3)
    data = written.state.encode_snapshot()
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 0x10
        assert ProducerState.decode_snapshot(bytes(broken), 3) is None
        assert ProducerState.decode_snapshot(data[:position], 3) is None


def test_empty_snapshot_is_valid() -> None:
    """The snapshot of a log without idempotent producers is valid."""
    data = ProducerState().encode_snapshot()
    assert len(data) == 10
    state = ProducerState.decode_snapshot(data, 50)
    assert state is not None
    assert len(state) == 0


def test_earlier_batches_are_added_to_a_snapshot() -> None:
    """Batches are added newest first while they are consecutive, up to a number of one epoch."""
    written = Written()
    numbers = range(3 + BATCHES_KEPT)
    headers = [header_of(number * 2, 2, base_offset=number * 2) for number in numbers]
    for number in numbers:
        written.write(number * 2, 2)
    state = ProducerState.decode_snapshot(written.state.encode_snapshot(), 2 * len(numbers))
    assert state is not None
    other = header_of(0, producer_id=9)
    state.add_earlier(iter([*reversed(headers), other]))
    assert [batch.last_offset for batch in state.producers[7].batches] == [
        number * 2 + 1 for number in numbers[3:]
    ]
    assert state.producers[7].batches == written.state.producers[7].batches
