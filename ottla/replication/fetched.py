"""The result of a fetch from one partition, and the limits of a whole fetch.

Follows ReplicaManager.readFromLog and Partition.fetchRecords.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ottla.base.buffers import FileRange, Part
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.storage.log.log import FetchedRecords, Log
from ottla.wire.records import batch

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

# The largest response (but always at least one whole batch), so that no consumer makes the broker
# read for long; a client that requests more sends another fetch.
RESPONSE_BYTES_MAX = 8 * 1024 * 1024
# A larger min_bytes is reduced to this: the next batch may not fit into the response any more.
ENOUGH_BYTES = RESPONSE_BYTES_MAX // 2
# With more aborted transactions than this, only those that concern the returned records are listed.
_ABORTED_UNSORTED_MAX = 16


# The properties of a fetch that are the same for all of its partitions: the isolation level; the
# size (bytes) from which on records are returned as a FileRange; whether only cached bytes are
# read; whether a follower may serve it, too (KIP-392). A plain tuple, because one is created for
# every fetch, and a named tuple takes three times as long to create and to unpack.
FetchOptions = tuple[int, int, bool, bool]


class Fetched(NamedTuple):
    """Whole batches, and the offsets of the same moment.

    `records` is None only if `only_if_cached` and the device would have to be read. `aborted` lists
    the aborted transactions that the records may belong to, for READ_COMMITTED: clients skip them
    (KIP-98). `is_at_end` is true if no data can be read until the partition changes.
    """

    records: Part | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction]
    is_at_end: bool


# Built from one tuple: the class's own constructor takes twice as long.
new_fetched: Callable[[tuple[object, ...]], Fetched] = partial(tuple.__new__, Fetched)


def enough_bytes(min_bytes: int) -> int:
    """Return the number of bytes that a fetch with this `min_bytes` waits for."""
    return min(min_bytes, ENOUGH_BYTES)


def behind_emptied(
    read: FetchedRecords, end_offset: int, read_from: Callable[[int], FetchedRecords | None]
) -> FetchedRecords:
    """Return the next records instead of batches that compaction has emptied.

    A read ends with its segment, of which compaction may leave an empty batch only. After seven
    responses without records librdkafka fails with MSG_SIZE_TOO_LARGE. Followers copy these
    batches, which have the last sequence numbers of producers.
    """
    while records := read.records:
        if isinstance(records, FileRange) or batch.has_records(records):
            break
        offset = batch.end_offset(records)
        if offset >= end_offset:
            break
        behind = read_from(offset)
        # The client fetches records that do not fit, or are cold, with its next request.
        if behind is None or not behind.records:
            break
        read = behind
    return read


def aborted_transactions(
    log: Log, offset: int, end_offset: int, records: Part
) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions that the records from `offset` on may belong to."""
    aborted = log.aborted_transactions(offset, end_offset)
    if len(aborted) > _ABORTED_UNSORTED_MAX:
        data = records.read() if isinstance(records, FileRange) else records
        end_offset = batch.end_offset(data)
        aborted = [transaction for transaction in aborted if transaction.first_offset < end_offset]
    return aborted
