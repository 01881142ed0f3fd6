"""The transaction index of a segment: the aborted transactions that ended in it.

An entry of the `.txnindex` file is 34 bytes; the file exists only where a transaction was aborted.
Read-committed fetches send the entries along, and the client skips those records (KIP-98).
Follows org.apache.kafka.storage.internals.log.TransactionIndex.

Not done: a file that somebody removes while the broker is down after a clean stop is not missed, as in
Kafka: most segments have none, and only reading all of one would tell. A damaged file is built anew, and
so is every one behind the recovery point after a crash.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from ottla.base.buffers import Buffer

ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """The producer's first record and marker, and the last stable offset when it was aborted."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedFound(NamedTuple):
    """Entries that touch a range; `is_complete` if no later segment can have another."""

    transactions: list[AbortedTransaction]
    is_complete: bool


def encode(transactions: Iterable[AbortedTransaction]) -> bytes:
    """Return entries as the file holds them."""
    return b"".join(ENTRY.pack(_VERSION, *transaction) for transaction in transactions)


def decode(data: Buffer) -> list[AbortedTransaction] | None:
    """Return a file's entries; None if it is damaged and must be built anew."""
    if len(data) % ENTRY.size:
        return None
    found: list[AbortedTransaction] = []
    for version, *fields in ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*fields)
        rises = not found or entry.last_offset > found[-1].last_offset
        if version != _VERSION or not rises or not 0 <= entry.first_offset < entry.last_offset:
            return None
        found.append(entry)
    return found


def collect(
    transactions: Iterable[AbortedTransaction], start_offset: int, end_offset: int
) -> AbortedFound:
    """Return the transactions with records in [start_offset, end_offset)."""
    found = []
    for entry in transactions:
        if entry.last_offset >= start_offset and entry.first_offset < end_offset:
            found.append(entry)
        if entry.last_stable_offset >= end_offset:
            return AbortedFound(found, True)
    return AbortedFound(found, False)
