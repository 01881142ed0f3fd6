"""Transactions step by step against a real broker, as read-committed consumers see them."""

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.offsets import (
    LATEST,
    READ_COMMITTED,
    CommittedOffset,
    committed_offsets,
    list_offsets,
)
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender, SendSettings
from ottla.client.transaction import LOST, Transaction, begin, find_lost, list_open
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_encoding import Rows

TIMEOUT_MS = 60_000


@pytest.fixture
def brokers(ottla_cluster: Cluster) -> Iterator[Brokers]:
    """Yield a client of a cluster with the topic `t` of two partitions."""
    ottla_cluster.create_topic("t", partitions=2)
    with ottla_cluster.admin() as brokers:
        yield brokers


def _write(brokers: Brokers, transaction: Transaction, *values: bytes) -> None:
    times = np.full(len(values), time.time_ns() // 1_000_000)
    rows = Rows(pa.array(values, pa.binary()), None, None, times)
    # Small batches: several of them are in one transaction.
    with ColumnSender(brokers, SendSettings(batch_bytes=50), transaction) as sender:
        sender.add("t", [0])
        for partition in (0, 1):
            sender.send("t", partition, rows)
        sender.flush()


def _committed(brokers: Brokers, *, none_is_open: bool = True) -> list[bytes]:
    # The response to a commit is sent before its markers are written.
    ends = dict.fromkeys([("t", 0), ("t", 1)], LATEST)
    while none_is_open and (
        list_offsets(brokers, ends, isolation_level=READ_COMMITTED) != list_offsets(brokers, ends)
    ):
        continue
    table = read_table(
        "t", bootstrap=brokers.bootstrap, isolation="read_committed", columns=["value"]
    )
    return [row["value"] for row in table.to_pylist()]


def test_records_are_visible_after_the_commit(brokers: Brokers) -> None:
    """Another process can commit with transactional id, producer id and epoch; a second commit
    changes nothing.
    """
    transaction = begin(brokers, "one", TIMEOUT_MS)
    _write(brokers, transaction, b"a", b"b", b"c")
    assert _committed(brokers, none_is_open=False) == []
    assert find_lost(brokers, [transaction]) == []
    with Brokers(brokers.bootstrap) as others:
        same = Transaction("one", transaction.producer)
        same.commit(others)
        same.commit(others)
    assert _committed(brokers) == [b"a", b"b", b"c"] * 2


def test_aborted_records_are_never_visible(brokers: Brokers) -> None:
    """An aborted transaction cannot be committed any more."""
    transaction = begin(brokers, "one", TIMEOUT_MS)
    _write(brokers, transaction, b"a")
    transaction.abort(brokers)
    transaction.abort(brokers)
    assert find_lost(brokers, [transaction]) == [transaction]
    with pytest.raises(ApiError) as caught:
        transaction.commit(brokers)
    assert caught.value.code in LOST
    assert _committed(brokers) == []


def test_new_writer_aborts_and_fences_the_earlier_one(brokers: Brokers) -> None:
    """The earlier writer's transaction is aborted, and its later writes are rejected."""
    earlier = begin(brokers, "one", TIMEOUT_MS)
    _write(brokers, earlier, b"lost")
    assert list_open(brokers, "on") == ["one"]
    assert list_open(brokers, "two") == []
    later = begin(brokers, "one", TIMEOUT_MS)
    assert list_open(brokers, "on") == []
    with pytest.raises(ApiError) as caught:
        _write(brokers, earlier, b"zombie")
    assert caught.value.code in LOST
    with pytest.raises(ApiError) as caught:
        earlier.commit(brokers)
    assert caught.value.code in LOST
    _write(brokers, later, b"kept")
    later.commit(brokers)
    assert _committed(brokers) == [b"kept", b"kept"]


def test_offsets_are_committed_with_the_records(brokers: Brokers) -> None:
    """A group's offsets and their metadata apply after the commit."""
    transaction = begin(brokers, "one", TIMEOUT_MS)
    transaction.add_offsets(brokers, "g", {("t", 1): CommittedOffset(7, metadata="said")})
    transaction.commit(brokers)
    assert committed_offsets(brokers, "g") == {("t", 1): CommittedOffset(7, -1, "said")}
    again = begin(brokers, "one", TIMEOUT_MS)
    again.add_offsets(brokers, "g", {("t", 1): CommittedOffset(8)})
    again.abort(brokers)
    assert committed_offsets(brokers, "g")["t", 1].offset == 7


def test_timeout_above_the_brokers_limit_is_an_error(brokers: Brokers) -> None:
    """The message names both options."""
    with pytest.raises(ApiError, match=r"transaction\.max\.timeout\.ms") as caught:
        begin(brokers, "one", 3_600_000)
    assert caught.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT
