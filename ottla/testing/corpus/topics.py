"""The topics of the corpus: their configuration, and the batches that are written to them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ottla.testing.corpus.names import TOPICS
from ottla.testing.corpus.records import BEGIN_MS, AwkwardRecord, fixed_records

CLUSTER_OPTIONS: Mapping[str, str] = {
    "log.cleaner.backoff.ms": "50",
    "log.retention.ms": "-1",
    "offset.metadata.max.bytes": "65536",
}
"""Options of a broker that keeps the records, and compacts soon."""
CODECS = (0, 1, 2, 3, 4)
_BATCH_RECORDS = 20
_BATCH_BYTES = 700_000


class Ending(Enum):
    """The end of the transaction that a batch belongs to."""

    NONE = "none"
    COMMIT = "commit"
    ABORT = "abort"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class CorpusBatch:
    """A batch of records of one partition, with its codec (0 none, 1 gzip, … 4 zstd)."""

    records: tuple[AwkwardRecord, ...]
    partition: int = 0
    codec: int = 0
    ending: Ending = Ending.NONE


@dataclass(frozen=True, slots=True)
class CorpusTopic:
    """A topic; `first_offset` is where it begins after its beginning is deleted."""

    name: str
    reason: str
    batches: tuple[CorpusBatch, ...] = ()
    partitions: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    first_offset: int = 0
    is_compacted: bool = False


def corpus_topics(*, with_large: bool = True) -> tuple[CorpusTopic, ...]:
    """Return the topics; `with_large` adds those with megabytes of records and 200 partitions."""
    topics = [
        CorpusTopic(
            "corpus-values",
            "keys, values and headers",
            tuple(_batches(fixed_records())),
            config={"message.timestamp.after.max.ms": str(2**63 - 1)},
        ),
        _times(),
        CorpusTopic(
            "corpus-append-time",
            "the broker sets the timestamps",
            (CorpusBatch(_numbered("append", 3)), CorpusBatch(_numbered("append", 2), codec=2)),
            config={"message.timestamp.type": "LogAppendTime"},
        ),
        _transactions("corpus-transactions", Ending.OPEN),
        _transactions("corpus-markers", Ending.ABORT),
        _compacted(),
        CorpusTopic(
            "corpus-trimmed",
            "the beginning is deleted",
            (CorpusBatch(_numbered("trimmed", 10)), CorpusBatch(_numbered("trimmed", 5))),
            first_offset=7,
        ),
        CorpusTopic("corpus-empty", "no record was ever written", partitions=3),
        CorpusTopic(
            "corpus-emptied",
            "all records are deleted",
            (CorpusBatch(_numbered("emptied", 4)),),
            first_offset=4,
        ),
        *(
            CorpusTopic(name, why, (CorpusBatch(_numbered(why, 2)),))
            for name, why in TOPICS.items()
        ),
    ]
    if with_large:
        topics += [_sizes(), _wide()]
    return tuple(topics)


def _batches(records: Sequence[AwkwardRecord]) -> Iterator[CorpusBatch]:
    """Yield batches below the limits of a topic, with one codec after the other."""
    pending: list[AwkwardRecord] = []
    size, number = 0, 0
    for row in records:
        row_size = len(row.key or b"") + len(row.value or b"")
        if pending and (len(pending) >= _BATCH_RECORDS or size + row_size > _BATCH_BYTES):
            yield CorpusBatch(tuple(pending), codec=CODECS[number % len(CODECS)])
            pending, size, number = [], 0, number + 1
        pending.append(row)
        size += row_size
    if pending:
        yield CorpusBatch(tuple(pending), codec=CODECS[number % len(CODECS)])


def _numbered(reason: str, count: int, first: int = 0) -> tuple[AwkwardRecord, ...]:
    def at(number: int) -> AwkwardRecord:
        key, value = f"k{number % 3}".encode(), f'{{"n":{number}}}'.encode()
        return AwkwardRecord(reason, key, value, (), BEGIN_MS + number * 1000)

    return tuple(map(at, range(first, first + count)))


def _times() -> CorpusTopic:
    def at(number: int, seconds: int) -> AwkwardRecord:
        value = f'{{"n":{number}}}'.encode()
        return AwkwardRecord("unordered timestamps", b"t", value, (), BEGIN_MS + seconds * 1000)

    within = tuple(at(number, seconds) for number, seconds in enumerate((0, 1, 600, 2, 3)))
    later = tuple(CorpusBatch((at(number, number),), partition=1) for number in (9, 3, 6, 1))
    return CorpusTopic(
        "corpus-times",
        "timestamps are unordered, within a batch and within a partition",
        (CorpusBatch(within), *later),
        partitions=2,
    )


def _transactions(name: str, last: Ending) -> CorpusTopic:
    endings = (Ending.COMMIT, Ending.ABORT, Ending.NONE, Ending.COMMIT, last)
    return CorpusTopic(
        name,
        f"committed and aborted transactions; the last one: {last.value}",
        tuple(
            CorpusBatch(_numbered(ending.value, 3, number * 3), codec=number % 5, ending=ending)
            for number, ending in enumerate(endings)
        ),
    )


def _compacted() -> CorpusTopic:
    rows = list(_numbered("compacted", 12))
    # The only record of its key, with a gap on both sides.
    rows[2] = AwkwardRecord("compacted", b"only", b'{"n":2}', (), BEGIN_MS + 2000)
    gone = (AwkwardRecord("a tombstone", b"k0", None),)
    return CorpusTopic(
        "corpus-compacted",
        "offsets are missing, because newer records have the same keys",
        (*(CorpusBatch((row,)) for row in rows), CorpusBatch(gone), CorpusBatch((rows[-1],))),
        config={
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "min.compaction.lag.ms": "0",
        },
        is_compacted=True,
    )


def _sizes() -> CorpusTopic:
    def of(size: int) -> CorpusBatch:
        # Varied, so that a cut or a shift is noticed.
        value = (b"0123456789abcdefghijklmnopqrstuvwxyz" * (size // 36 + 1))[:size]
        return CorpusBatch((AwkwardRecord(f"{size} bytes", b"size", value),))

    small = CorpusBatch((AwkwardRecord("20 MB that compress to KB", b"bomb", b"0" * 20_000_000),))
    compressed = CorpusBatch(small.records, codec=4)
    sizes = (999_999, 1_000_001, 1_040_000, 1_048_576, 3_000_000)
    return CorpusTopic(
        "corpus-sizes",
        "records beyond the defaults of clients",
        (*map(of, sizes), compressed),
        config={"max.message.bytes": "10485760"},
    )


def _wide() -> CorpusTopic:
    last = CorpusBatch(_numbered("the last of 200 partitions", 2), partition=199)
    return CorpusTopic("corpus-wide", "200 partitions, of which one has records", (last,), 200)
