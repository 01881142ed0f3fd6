"""The scan of a chunk of a log, in steps."""

import itertools
import json
from collections.abc import Iterable
from typing import Any

from ottla.base.search.filters import Filters
from ottla.base.search.matching import Matcher
from ottla.server.search.scan import PartitionScan, Step
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.logs import batch


def partition_scan(end_offset: int, **words: Any) -> PartitionScan:
    """Return a search from the beginning."""
    matcher = Matcher(words.pop("filters", Filters()).conditions())
    return PartitionScan(topic="t", partition=0, next_offset=words.pop("next_offset", 0),
                end_offset=end_offset, readable_end=end_offset, matcher=matcher, **words)  # fmt: skip


def scan(
    search: PartitionScan, data: bytes, aborted: Any = (), seconds: float = 1e9
) -> list[list[Any]]:
    """Return the rows of each step; the clock advances by a second at each look."""
    clock = itertools.count()
    step = Step(search, memoryview(data), aborted, lambda: float(next(clock)))
    values = []
    while not step.is_done:
        values.append([json.loads(row) for row in step.run(seconds)])
    return values


def offsets(steps: Iterable[Iterable[dict[str, Any]]]) -> list[int]:
    """Return the offsets of all rows."""
    return [row["offset"] for rows in steps for row in rows]


def test_steps_end_at_the_deadline_and_continue() -> None:
    """A step stops within a batch, and the next one resumes behind the last record."""
    data = batch(*(b"%d" % n for n in range(1000)))
    search = partition_scan(1000, filters=Filters(value="no such text", ignore_case=True))
    steps = scan(search, bytes(data), seconds=3)
    assert len(steps) > 5
    assert offsets(steps) == []
    assert (search.totals.records, search.next_offset) == (1000, 1000)


def test_range_is_exact_within_batches() -> None:
    """Records before the position and from the end on are not returned."""
    data = bytes(batch(b"0", b"1", b"2", b"3"))
    assert offsets(scan(partition_scan(3, next_offset=1), data)) == [1, 2]


def test_limit_stops_behind_the_last_match() -> None:
    """The next offset is the one at which a second search resumes."""
    search = partition_scan(5, limit=2)
    assert offsets(scan(search, bytes(batch(b"a", b"b", b"c")))) == [0, 1]
    assert search.next_offset == 2


def test_batches_that_are_too_old_are_not_decoded() -> None:
    """Only the header of a batch is needed to skip it."""
    old, new = batch(b"a", timestamp=5), batch(b"b", timestamp=50, base_offset=1)
    search = partition_scan(2, from_ms=50)
    assert offsets(scan(search, bytes(old + new))) == [1]
    assert (search.totals.records, search.totals.skipped_bytes) == (1, len(old))


def test_older_record_within_a_batch_does_not_match() -> None:
    """Timestamps are compared for each record."""
    data = encode_batch([Record(None, b"a", (), 50), Record(None, b"b", (), 5)])
    assert offsets(scan(partition_scan(2, from_ms=50), bytes(data))) == [0]


def test_damaged_batch_is_a_problem_and_the_scan_continues() -> None:
    """The row has the offset of the batch and the error; later batches are searched."""
    bad, good = batch(b"a"), batch(b"b", base_offset=1)
    bad[-1] ^= 1
    (rows,) = scan(partition_scan(2), bytes(bad + good))
    assert [row["type"] for row in rows] == ["problem", "match"]
    assert (rows[0]["offset"], rows[0]["error"]) == (0, "CORRUPT_MESSAGE")


def test_markers_and_aborted_transactions_are_skipped() -> None:
    """A batch is aborted if it lies in the range of its producer's aborted transaction."""
    settings = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    aborted = batch(b"a", base_sequence=0, **settings)
    other = batch(b"b", base_offset=1, base_sequence=0, **{**settings, "producer_id": 8})
    later = batch(b"c", base_offset=3, base_sequence=1, **settings)
    marker = batch(b"m", base_offset=2, control=True, **settings)
    data = bytes(aborted + other + marker + later)
    assert offsets(scan(partition_scan(4), data, aborted=[(7, 0, 2)])) == [1, 3]
    assert offsets(scan(partition_scan(4), data)) == [0, 1, 3]


def test_rows_have_the_fields_of_consume() -> None:
    """Bytes that are not UTF-8 are added as base64; a limit shortens the value, not its size."""
    data = encode_batch([Record(b"\xff", b"abc", (("h", b"1"), ("n", None)), 7)])
    ((row,),) = scan(partition_scan(1, value_limit=2), bytes(data))
    assert row == {
        "type": "match", "topic": "t", "partition": 0, "offset": 0, "tstype": "create", "ts": 7,
        "headers": ["h", "1", "n", None], "key": "\ufffd", "key_base64": "/w==", "payload": "ab",
        "payload_size": 3,
    }  # fmt: skip


def test_rows_have_the_bytes_of_headers() -> None:
    """If the value of a header is not UTF-8, all values are added as base64, in their order."""
    data = encode_batch([Record(None, None, (("h", b"\xff"), ("n", None), ("h", b"1")), 7)])
    ((row,),) = scan(partition_scan(1), bytes(data))
    assert row["headers"] == ["h", "\ufffd", "n", None, "h", "1"]
    assert row["headers_base64"] == ["/w==", None, "MQ=="]


def test_truncated_chunk_ends_the_scan() -> None:
    """Bytes after the last whole batch are left for the next chunk."""
    one, two = batch(b"a"), batch(b"b", base_offset=1)
    search = partition_scan(2)
    assert offsets(scan(search, bytes(one + two[:-1]))) == [0]
    assert search.next_offset == 1
