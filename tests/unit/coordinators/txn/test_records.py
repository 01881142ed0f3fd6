"""The records of transactions in __transaction_state, encoded and decoded."""

import pytest

from ottla.base.errors import ProtocolError
from ottla.coordinators.txn import records
from ottla.coordinators.txn.records import TransactionUpdate
from ottla.coordinators.txn.state import TransactionMetadata, TransactionState
from ottla.wire.records.records import Record


@pytest.mark.parametrize("state", list(TransactionState), ids=lambda state: state.display_name)
def test_transaction_is_decoded_from_its_record(state):
    """The record contains partitions unless the transaction has not begun."""
    is_empty = state is TransactionState.EMPTY
    topic_partitions = frozenset() if is_empty else frozenset({("t", 0), ("t", 1), ("u", 5)})
    change = TransactionUpdate(
        "tx", TransactionMetadata("tx", 7, 1, 1000, state, topic_partitions, 5, 6)
    )
    assert records.decode(records.encode(change, 1, 0)) == change


def test_tombstone_removes_the_transactional_id():
    """A tombstone has no value."""
    change = TransactionUpdate("tx", None)
    assert records.encode(change, 1, 0).value is None
    assert records.decode(records.encode(change, 1, 0)) == change


def test_unknown_records_are_skipped_and_damaged_ones_raise():
    """A later key version is skipped; a missing key and an unknown state are errors."""
    assert records.decode(Record(key=b"\0\x01", value=b"")) is None
    with pytest.raises(ProtocolError):
        records.decode(Record(key=None, value=b""))
    change = TransactionUpdate("tx", TransactionMetadata("tx", 7))
    good = records.encode(change, 1, 0)
    damaged = bytearray(good.value)
    damaged[16] = 99
    with pytest.raises(ProtocolError):
        records.decode(good._replace(value=bytes(damaged)))
