"""The batch that a checkpoint has planned but not written, read from Spark's files."""

from pathlib import Path
from typing import Any

import pytest

from ottla.streams.spark.pipelines.progress import batch_in_progress

_IDS = '"@topic_ids": {"a": "AAAAAAAAAAAAAAAAAAAAAg"}'


class _LocalFolder:
    """A checkpoint on this machine, in the place of one that Spark reads."""

    def __init__(self, path: Path) -> None:
        self.location = str(path)
        self._path = path

    def read(self, name: str) -> str | None:
        path = self._path / name
        return path.read_text() if path.is_file() else None

    def last_number(self, name: str) -> int:
        return max((int(path.name) for path in (self._path / name).glob("*")), default=-1)


def _checkpoint(path: Path, commits: int, *batches: tuple[str, ...]) -> Any:
    """Return a checkpoint with batches, of which the first ones are written."""
    for name in ("offsets", "commits"):
        (path / name).mkdir()
    for number, lines in enumerate(batches):
        text = "\n".join(("v1", '{"batchWatermarkMs":0,"conf":{}}', *lines))
        (path / "offsets" / str(number)).write_text(text)
    for number in range(commits):
        (path / "commits" / str(number)).write_text("v1\n{}")
    return _LocalFolder(path)


@pytest.mark.parametrize(
    ("commits", "batches", "sentence"),
    [
        (0, [('{"a": {"0": 5}}',)], "The batch has the records of a-0 up to offset 4."),
        (
            1,
            [('{"a": {"0": 5, "1": 2}}',), ('{"a": {"0": 9, "1": 2}, ' + _IDS + "}",)],
            "The batch has the records of a-0 from offset 5 to 8.",
        ),
        (
            0,
            [('{"a": {"0": 1, "1": 1, "2": 1}}', '{"b": {"0": 1}}')],
            "The batch has the records of a-0 up to offset 0, a-1 up to offset 0, a-2 up to offset 0 "
            "and of 1 more partitions.",
        ),
        (1, [('{"a": {"0": 5}}',)], ""),
        (0, [('{"logOffset": 3}', "-")], ""),
        (0, [], ""),
    ],
)
def test_the_records_of_the_planned_batch(
    tmp_path: Path, commits: int, batches: list[tuple[str, ...]], sentence: str
) -> None:
    """Topics have offsets; files, and a batch that is written, are left out."""
    assert batch_in_progress(_checkpoint(tmp_path, commits, *batches)) == sentence
