"""The transaction index: aborted transactions of a segment."""

from pathlib import Path

import pytest

from ottla.base.files import RealFileSystem
from ottla.storage.files import txn_index
from ottla.storage.files.txn_index import AbortedTransaction, TransactionIndex

FIRST = AbortedTransaction(1, 10, 20, 15)
SECOND = AbortedTransaction(2, 15, 30, 31)


def test_an_entry_takes_34_bytes() -> None:
    """An entry has version 0 and four 64-bit integers."""
    data = txn_index.encode([FIRST, SECOND])
    assert len(data) == 68
    assert data[:10].hex() == "0000" + "0000000000000001"
    assert txn_index.decode(data) == [FIRST, SECOND]


@pytest.mark.parametrize(
    "data",
    [
        txn_index.encode([FIRST])[:-1],
        bytes(34),
        b"\x00\x01" + txn_index.encode([FIRST])[2:],
        txn_index.encode([SECOND, FIRST]),
        txn_index.encode([AbortedTransaction(1, 9, 9, 9)]),
    ],
)
def test_damaged_file_is_detected(data: bytes) -> None:
    """Loading rejects half entries, zeros, unknown versions, unsorted entries and empty
    transactions.
    """
    assert txn_index.decode(data) is None


@pytest.mark.parametrize(
    ("start", "end", "found", "complete"),
    [
        (0, 10, [], True),
        (0, 11, [FIRST], True),
        (0, 16, [FIRST, SECOND], True),
        (21, 40, [SECOND], False),
        (31, 40, [], False),
    ],
)
def test_transactions_of_a_range_are_collected(
    start: int, end: int, found: list[AbortedTransaction], complete: bool
) -> None:
    """The search is complete if no later segment can hold a transaction of the range."""
    assert txn_index.collect([FIRST, SECOND], start, end) == (found, complete)


def test_empty_file_is_damaged(tmp_path: Path) -> None:
    """The file is created with its first entry, so an empty file has lost entries."""
    path = tmp_path / "00.txnindex"
    index = TransactionIndex(RealFileSystem(), lambda: str(path))
    assert index.is_sound()
    path.write_bytes(b"")
    assert not index.is_sound()
    index.clear()
    assert not path.exists()
    index.add(FIRST)
    assert index.is_sound()
    assert TransactionIndex(RealFileSystem(), lambda: str(path)).entries == [FIRST]
