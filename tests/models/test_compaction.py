"""Compaction against a model: the newest record of each key remains, even after power losses."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.rng import SeededRng
from ottla.storage.cleaner.cleaning import Settings
from ottla.storage.cleaner.compaction import KEY_BYTES
from ottla.testing.sim.faults import PowerLoss
from tests.unit.storage.compacted import Compacted, in_virtual_time
from tests.unit.storage.world import read_all

# Infinite, so that tombstones stay and the model does not depend on time.
FOR_EVER = 2**62

KEYS = [b"a", b"b", b"key-that-is-so-long-that-a-digest-stands-for-it", b""]
RECORDS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from([b"x", b"value" * 5, None])),
    min_size=1,
    max_size=5,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), RECORDS, st.sampled_from([0, 0, 1, 2, 3, 4])),
        st.tuples(st.just("append"), RECORDS, st.just(0)),
        st.tuples(st.just("transaction"), RECORDS, st.sampled_from(["COMMIT", "ABORT"])),
        st.tuples(st.just("clean"), st.integers(1, 4), st.just(0)),
        st.tuples(st.just("tick"), st.just(0), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(0, 6), st.just(0)),
        st.tuples(st.just("restart"), st.booleans(), st.just(0)),
    ),
    min_size=2,
    max_size=25,
)

Entry = tuple[int, bytes | None, bytes | None]


class History:
    """A compacted log, and all committed records that were ever appended to it."""

    def __init__(self) -> None:
        self.compacted = Compacted(
            segment_bytes=500, delete_retention_ms=FOR_EVER, producer_id_expiration_ms=FOR_EVER
        )
        # Every record that was committed, by offset; an aborted one may be there or not.
        self.entries: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.aborted: set[int] = set()
        self.sequences: dict[int, int] = {}
        self.durable = 0

    def do(self, step: str, argument: Any, extra: Any) -> None:
        """Perform one step."""
        compacted = self.compacted
        if step == "append":
            self.note(argument, compacted.append(*argument, compression=extra))
        elif step == "transaction":
            self.transaction(argument, extra)
        elif step == "clean":
            compacted.settings = Settings(memory_bytes=argument * KEY_BYTES)
            self.durable = compacted.log.log_end_offset
            compacted.clean()
        elif step == "tick":
            compacted.world.clock.now_ms += 10
            compacted.log.deletion.remove_deleted()
            compacted.directories.checkpoint()
        elif step == "truncate":
            self.truncate(argument)
        else:
            compacted.restart(clean=argument)

    def note(self, records: list[tuple[bytes, bytes | None]], offset: int) -> None:
        """Store the appended records in the model."""
        self.entries.update(enumerate(records, offset))

    def transaction(self, records: list[tuple[bytes, bytes | None]], outcome: str) -> None:
        """Append a whole transaction and advance the sequence numbers of its producer."""
        producer_id = 7 if outcome == "ABORT" else 8
        fields = {"producer_id": producer_id, "producer_epoch": 0, "transactional": True}
        sequence = self.sequences.get(producer_id, 0)
        offset = self.compacted.append(*records, base_sequence=sequence, **fields)
        self.sequences[producer_id] = sequence + len(records)
        if outcome == "ABORT":
            self.aborted.update(range(offset, offset + len(records)))
        else:
            self.note(records, offset)
        self.compacted.end_transaction(producer_id, outcome)

    def truncate(self, back: int) -> None:
        """Truncate records that are neither compacted (those were committed) nor transactional."""
        log = self.compacted.log
        end = log.log_end_offset
        if any(header.has_producer_id for header in self.headers(max(0, end - back - 8))):
            return
        log.truncation.truncate_to(max(log.first_dirty_offset, end - back))
        log.high_watermark = log.log_end_offset
        self.durable = min(self.durable, log.log_end_offset)
        self.forget_from(log.log_end_offset)

    def headers(self, start: int) -> list[Any]:
        """Return the headers of the batches that end at or after an offset."""
        segments = self.compacted.log.segments
        result = [header for segment in segments for _, header in segment.batches.headers(0)]
        return [header for header in result if header.last_offset >= start]

    def forget_from(self, end: int) -> None:
        """Remove records that are no longer in the log."""
        self.entries = {offset: entry for offset, entry in self.entries.items() if offset < end}
        self.aborted = {offset for offset in self.aborted if offset < end}

    def check(self) -> None:
        """Compare the log with the model, and read it from each offset."""
        records = self.check_records()
        log = self.compacted.log
        for start in range(log.log_start_offset, log.log_end_offset):
            ahead = [entry for entry in records if entry[0] >= start]
            assert [(e.offset, e.key, e.value) for e in read_all(log, start=start)] == ahead

    def check_records(self) -> list[Entry]:
        """Compare offsets, keys and values with the model; return the records."""
        log = self.compacted.log
        rows = [(record.offset, record.key, record.value) for record in read_all(log)]
        visible = [entry for entry in rows if entry[0] not in self.aborted]
        newest = {key: offset for offset, (key, _) in self.entries.items()}
        for offset, key, value in visible:
            assert self.entries[offset] == (key, value)
        offsets = {offset for offset, _, _ in visible}
        assert set(newest.values()) <= offsets
        older = {o for o in offsets if o < log.first_dirty_offset and o not in newest.values()}
        assert all(newest[self.entries[o][0]] >= log.first_dirty_offset for o in older)
        self.check_order()
        return rows

    def check_order(self) -> None:
        """Check that batches are in order and within their segments."""
        log = self.compacted.log
        end = log.log_start_offset
        for segment, behind in zip(log.segments, [*log.segments[1:], None], strict=True):
            for _, header in segment.batches.headers(0):
                assert header.base_offset >= max(end, segment.base_offset)
                end = header.last_offset + 1
            assert behind is None or end <= behind.base_offset
        assert end <= log.log_end_offset
        for producer_id, sequence in self.sequences.items():
            producer = log.producers.producers.get(producer_id)
            if producer is not None and producer.batches:
                assert producer.batches[-1].last_sequence == sequence - 1
        assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_the_newest_record_of_each_key_remains(steps: list[tuple[str, Any, Any]]) -> None:
    """Steps are appends, transactions, truncations, restarts, and passes with little memory."""
    history = History()
    for step, argument, extra in steps:
        history.do(step, argument, extra)
        history.check()
    while history.compacted.clean():
        history.check()
    history.check()
    records = read_all(history.compacted.log)
    offsets = [record.offset for record in records if record.offset not in history.aborted]
    newest = {key: offset for offset, (key, _) in history.entries.items()}
    assert offsets == sorted(newest.values())
    assert not [record for record in records if record.offset in history.aborted]


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    batches=st.lists(st.tuples(RECORDS, st.sampled_from(["plain", "ABORT", "COMMIT"])), min_size=6,
                     max_size=16),
    change=st.integers(1, 60),
    seed=st.integers(0, 9),
    again=st.integers(1, 25),
    power=st.booleans(),
)  # fmt: skip
def test_an_interrupted_pass_loses_nothing(
    batches: list[tuple[Any, str]], change: int, seed: int, again: int, power: bool
) -> None:
    """No record is lost if the power or the process fails at any change to the disk, in the pass or
    in the next start.
    """
    history = History()
    for records, kind in batches:
        if kind == "plain":
            history.do("append", records, 0)
        else:
            history.do("transaction", records, kind)
    history.compacted.log.rolling.roll()
    history.compacted.log.durability.flush()
    history.compacted.directories.checkpoint()
    end_it = history.compacted.lose_power if power else lambda _: history.compacted.restart()
    history.compacted.files.faults.lose_power_at(change)
    try:
        while history.compacted.clean():
            history.compacted.world.clock.now_ms += 10
            history.compacted.log.deletion.remove_deleted()
    except PowerLoss:
        history.compacted.files.faults.lose_power_at(0)
    cut_short_again(history, again, seed, power=power)
    end_it(seed)
    history.check()
    while history.compacted.clean():
        history.check()
    end_it(seed + 1)
    history.check()


def cut_short_again(history: History, change: int, seed: int, *, power: bool) -> None:
    """Start, and interrupt that start at a change as well."""
    world, files = history.compacted.world, history.compacted.files
    world.files = files.power_loss(SeededRng(seed)) if power else files.kill()
    world.files.faults.lose_power_at(change)  # type: ignore[attr-defined]
    history.compacted.files = world.files  # type: ignore[assignment]
    try:
        history.compacted.open()
    except PowerLoss:
        return


def crowded() -> History:
    """Return a history whose compaction merges segments and drops an aborted transaction."""
    history = History()
    for number in range(6):
        history.do("append", [(KEYS[number % 2], b"%d" % number * 10), (KEYS[2], b"x")], 0)
    history.do("transaction", [(b"a", b"y" * 100)], "ABORT")
    history.do("transaction", [(b"c", b"z" * 100)], "COMMIT")
    compacted = history.compacted
    for number in range(6):
        history.do("append", [(KEYS[number % 2], b"%d" % number * 10)], 0)
        compacted.log.rolling.roll()
    compacted.log.durability.flush()
    compacted.directories.checkpoint()
    assert compacted.log.segments_count > 8
    return history


def clean_twice(history: History) -> None:
    """Compact up to the half of the log that is committed, and then the rest."""
    log = history.compacted.log
    for committed in (log.log_end_offset // 2, log.log_end_offset):
        log.high_watermark = committed
        assert in_virtual_time(history.compacted.cleaner.clean_dirtiest())
        log.deletion.remove_deleted()


def changes_of_two_rounds() -> int:
    """Return the number of changes to the disk that `clean_twice` makes."""
    history = crowded()
    before = history.compacted.files.faults.changes_count
    clean_twice(history)
    return history.compacted.files.faults.changes_count - before


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_power_may_fail_at_every_change_of_a_pass(seed: int) -> None:
    """The newest records remain for any subset of the unsynced names and bytes that survives."""
    for change in range(1, changes_of_two_rounds() + 1):
        history = crowded()
        history.compacted.files.faults.lose_power_at(change)
        with pytest.raises(PowerLoss):
            clean_twice(history)
        cut_short_again(history, 1 + (change * 7 + seed) % 23, seed * 1000 + change, power=True)
        history.compacted.lose_power(seed * 1000 - change)
        history.check_records()
        while history.compacted.clean():
            history.check_records()
        history.compacted.lose_power(seed)
        history.check_records()
