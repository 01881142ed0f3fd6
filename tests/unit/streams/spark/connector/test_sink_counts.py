"""The counts of records that a sink drops are passed from the process that commits to the driver."""

from collections import Counter
from pathlib import Path

from ottla.streams.spark.connector.sink_counts import SinkCounts, SinkCountsFile, append_counts


def test_counts_of_each_micro_batch_are_read_once(tmp_path: Path) -> None:
    """The counts of its tasks are added; a micro-batch that drops nothing does not write."""
    path = tmp_path / "counts"
    file = SinkCountsFile(str(path))
    append_counts(str(path), [SinkCounts(), SinkCounts()])
    assert not path.exists()
    assert file.take() == SinkCounts()
    append_counts(str(path), [SinkCounts(Counter({1: 2})), SinkCounts(Counter({1: 1, 0: 5}))])
    append_counts(str(path), [SinkCounts(topics=Counter({"out": 3}))])
    assert file.take() == SinkCounts(Counter({1: 3, 0: 5}), Counter({"out": 3}))
    assert file.take() == SinkCounts()
    append_counts(str(path), [SinkCounts(Counter({0: 1}))])
    assert file.take() == SinkCounts(Counter({0: 1}))


def test_an_incomplete_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    """The driver may read while the counts are being written."""
    path = tmp_path / "counts"
    file = SinkCountsFile(str(path))
    line = b'{"tasks": {"0": 1}, "topics": {}}\n'
    path.write_bytes(line + line[:9])
    assert file.take().tasks == {0: 1}
    path.write_bytes(line + line)
    assert file.take().tasks == {0: 1}


def test_a_file_that_cannot_be_written_does_not_fail_the_micro_batch(tmp_path: Path) -> None:
    """Its output is committed already, so its counts are lost."""
    path = str(tmp_path / "missing" / "counts")
    append_counts(path, [SinkCounts(Counter({0: 1}))])
    assert SinkCountsFile(path).take() == SinkCounts()
