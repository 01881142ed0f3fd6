"""Keys and values of `__transaction_state`."""

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire.txn_records import (
    PartitionsSchema,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

VALUE = TransactionLogValue(
    producer_id=7,
    producer_epoch=1,
    transaction_timeout_ms=60_000,
    transaction_status=1,
    transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[0, 2])],
    transaction_last_update_timestamp_ms=5,
    transaction_start_timestamp_ms=4,
)


def test_key_is_a_version_and_the_transactional_id() -> None:
    """The key is the same for every broker version."""
    assert encode_key("tx") == bytes.fromhex("0000 0002 7478")
    assert decode_key(encode_key("tx")) == "tx"


def test_key_of_another_kind_is_ignored() -> None:
    """A newer broker may have written it."""
    assert decode_key(bytes.fromhex("0001 0002 7478")) is None


def test_value_is_written_so_that_every_broker_can_read_it() -> None:
    """Version 0 has id, epoch, timeout, status, partitions, times."""
    assert encode_value(VALUE, 0) == bytes.fromhex(
        "0000 0000000000000007 0001 0000ea60 01"
        "00000001 0001 74 00000002 00000000 00000002"
        "0000000000000005 0000000000000004"
    )


def test_transaction_that_has_not_begun_has_no_partitions() -> None:
    """The partitions are null, not an empty list."""
    assert encode_value(TransactionLogValue(producer_id=7), 0)[17:21] == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("version", [0, 1])
def test_every_version_of_a_value_is_read(version: int) -> None:
    """Version 1 is used by clusters with transaction.version 1 and 2."""
    assert decode_value(encode_value(VALUE, version)) == VALUE


def test_neighbouring_producer_ids_are_read() -> None:
    """The producer ids are in the tagged fields of version 1 (KIP-890)."""
    value = TransactionLogValue(
        producer_id=7,
        previous_producer_id=6,
        next_producer_id=8,
        next_producer_epoch=0,
        client_transaction_version=2,
    )
    assert decode_value(encode_value(value, 1)) == value


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\x09", b"\0\0\0"])
def test_damaged_value_is_a_protocol_error(data: bytes) -> None:
    """Damaged values raise only ProtocolError."""
    with pytest.raises(ProtocolError):
        decode_value(data)
