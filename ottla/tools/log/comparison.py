"""Differences between an index and its segment, which `ottla log dump` reports."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ottla.base.errors import OttlaError
from ottla.tools.log.findings import Findings, TimeComparison
from ottla.tools.log.segments import FoundBatch, SegmentWalk
from ottla.tools.log.sidecars import EntryRow

_REMEDY = "to let the broker rebuild the index, delete it while the broker is stopped"


class _Segment:
    """The batches of an open segment file, of any format."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size

    def batches(self, position: int = 0) -> Iterator[FoundBatch]:
        """Return the batches from a position on, up to one that is incomplete."""
        return iter(SegmentWalk(self._read, self._size, position))

    def batch_at(self, position: int) -> FoundBatch:
        """Return the batch at a position; OttlaError if no complete batch is there."""
        found = next(self.batches(position), None) if position >= 0 else None
        if found is None:
            raise OttlaError(
                f"no complete batch is at position {position} of {self._path.name}, which is in "
                f"the index; {_REMEDY}"
            )
        return found

    def _read(self, position: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, position)


def differences(path: Path, rows: Sequence[EntryRow]) -> list[str]:
    """Compare the entries of an offset or time index with the segment beside it.

    Return one sentence for each difference; FileNotFoundError if there is no segment.
    """
    findings, segment_path = Findings(), path.with_suffix(".log")
    descriptor = os.open(segment_path, os.O_RDONLY)
    complaints: list[str] = []
    try:
        _compare(path, rows, _Segment(segment_path, descriptor), findings)
    except OttlaError as error:
        complaints.append(str(error))
    finally:
        os.close(descriptor)
    return [*_sentences(findings), *complaints]


def _compare(path: Path, rows: Sequence[EntryRow], segment: _Segment, findings: Findings) -> None:
    if path.suffix == ".timeindex":
        times = TimeComparison(path.name, segment, findings)
        for row in rows:
            times.compare(row["timestamp"], row["offset"])
    else:
        for row in rows:
            findings.compare_offset(path.name, segment, row["offset"], row["position"])


def _sentences(findings: Findings) -> list[str]:
    # Timestamps that do not rise are a matter of the index alone.
    result = [
        f"offset {indexed} is in the index, and the batch at its position ends with offset {last}"
        for offsets in findings.positions.values()
        for indexed, last in offsets.items()
    ]
    result += [
        f"offset {indexed} is in the index, and no batch of the segment ends with it"
        for offsets in findings.missing.values()
        for indexed, _ in offsets
    ]
    result += [
        f"timestamp {indexed} is in the index, and the largest one of its batch is {largest}"
        for pairs in findings.timestamps.values()
        for indexed, largest in pairs
    ]
    return [f"{sentence}; {_REMEDY}" for sentence in result]
