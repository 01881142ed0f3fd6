"""The transaction index of a segment: the aborted transactions that ended in it.

An entry of the `.txnindex` file is 34 bytes; the file exists only if a transaction was aborted.
Read-committed fetches return the entries, and the client skips those records (KIP-98). Follows
org.apache.kafka.storage.internals.log.TransactionIndex.

The next start rebuilds a damaged or empty file; after a crash, it also rebuilds every one after the
recovery point.

Not done: a file that was removed while the broker was down after a clean stop is not detected.
Kafka does not detect it either: most segments have no such file, so the whole segment would have to
be read.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.base.files import FileSystem
from ottla.storage.files.formats import TRANSACTION_ENTRY

_VERSION = 0


class AbortedTransaction(NamedTuple):
    """The producer's first record and marker, and the last stable offset when it was aborted."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedFound(NamedTuple):
    """Entries that overlap a range; `is_complete` if no later segment can have another."""

    transactions: list[AbortedTransaction]
    is_complete: bool


def encode(transactions: Iterable[AbortedTransaction]) -> bytes:
    """Return entries in the format of the file."""
    return b"".join(TRANSACTION_ENTRY.pack(_VERSION, *transaction) for transaction in transactions)


def decode(data: Buffer) -> list[AbortedTransaction] | None:
    """Return a file's entries; None if it is damaged and must be rebuilt."""
    if len(data) % TRANSACTION_ENTRY.size:
        return None
    entries: list[AbortedTransaction] = []
    for version, *fields in TRANSACTION_ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*fields)
        rises = not entries or entry.last_offset > entries[-1].last_offset
        if version != _VERSION or not rises or not 0 <= entry.first_offset < entry.last_offset:
            return None
        entries.append(entry)
    return entries


def collect(
    transactions: Iterable[AbortedTransaction], start_offset: int, end_offset: int
) -> AbortedFound:
    """Return the transactions with records in [start_offset, end_offset)."""
    overlapping = []
    for entry in transactions:
        if entry.last_offset >= start_offset and entry.first_offset < end_offset:
            overlapping.append(entry)
        if entry.last_stable_offset >= end_offset:
            return AbortedFound(overlapping, True)
    return AbortedFound(overlapping, False)


class TransactionIndex:
    """The transaction index of one segment: its file, and its entries, which are read on first use.

    `path` returns the current path of the file. Raises OSError.
    """

    __slots__ = ("_entries", "_files", "_path")

    def __init__(self, files: FileSystem, path: Callable[[], str]) -> None:
        self._files = files
        self._path = path
        self._entries: list[AbortedTransaction] | None = None

    def start_empty(self) -> None:
        """Begin without entries: the segment is new and has no file."""
        self._entries = []

    @property
    def entries(self) -> list[AbortedTransaction]:
        """The aborted transactions whose marker is in this segment."""
        if self._entries is None:
            self._entries = decode(self._read() or b"") or []
        return self._entries

    def is_sound(self) -> bool:
        """Return True if the file is valid. A lost file cannot be distinguished from one that never
        existed.

        An empty file is invalid: it was created for an entry.
        """
        data = self._read()
        return data is None or (bool(data) and decode(data) is not None)

    def add(self, transaction: AbortedTransaction) -> None:
        """Add an aborted transaction, also to the file."""
        self.entries.append(transaction)
        self._append([transaction])

    def clear(self, from_offset: int = 0) -> None:
        """Remove the aborted transactions whose marker is at or after `from_offset`."""
        earlier = [entry for entry in self.entries if entry.last_offset < from_offset]
        path = self._path()
        if self._files.exists(path) and (len(earlier) != len(self.entries) or not earlier):
            self._files.remove(path)
            if earlier:
                self._append(earlier)
        self._entries = earlier

    def _read(self) -> bytes | None:
        path = self._path()
        return self._files.read(path) if self._files.exists(path) else None

    def _append(self, transactions: Iterable[AbortedTransaction]) -> None:
        file = self._files.open(self._path(), create=True)
        file.append(encode(transactions))
        file.close()
