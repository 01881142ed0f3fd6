"""The damage that `kafka-dump-log` finds in indexes and segments, reported after all files."""

from collections import defaultdict

from ottla.tools.scripts.printing import err


class Findings:
    """Differences by file, in the order of Apache Kafka's report."""

    def __init__(self) -> None:
        self.positions: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """Indexed offsets, and the last offsets of the batches at their positions."""
        self.timestamps: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """Indexed timestamps, and the largest of their batches."""
        self.unordered: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """Indexed timestamps, and the preceding ones."""
        self.missing: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """Offsets of a time index, and the last offsets of the batches with them, or -1."""
        self.gaps: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """Offsets of records, and the next ones."""

    def report(self) -> None:
        """Print them on standard error."""
        for name, offsets in self.positions.items():
            err(f"Mismatches in :{name}")
            for indexed, last_offset in sorted(offsets.items(), reverse=True):
                err(f"  Index offset: {indexed}, log offset: {last_offset}")
        for name, pairs in self.timestamps.items():
            err(f"Found timestamp mismatch in :{name}")
            for indexed, largest in pairs:
                err(f"  Index timestamp: {indexed}, log timestamp: {largest}")
        for name, pairs in self.unordered.items():
            err(f"Found out of order timestamp in :{name}")
            for indexed, before in pairs:
                err(f"  Index timestamp: {indexed}, Previously indexed timestamp: {before}")
        for name, pairs in self.missing.items():
            err(f"The following indexed offsets are not found in :{name}")
            for indexed, last_offset in pairs:
                err(f"Indexed offset: {indexed}, found log offset: {last_offset}")
        for name, offsets in self.gaps.items():
            err(f"Non-consecutive offsets in {name}")
            for before, after in sorted(offsets.items()):
                err(f"  {before} is followed by {after}")
