"""Batches that are written with requests of our own."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.raw.batches import append_batch
from ottla.testing import Cluster
from ottla.wire.records.records import Record
from tests.corpus.judges import read_with_librdkafka

pytestmark = pytest.mark.slow


def test_timestamps_of_zero_are_kept(ottla_cluster: Cluster) -> None:
    """A plain consumer reads them; the result is the offset of the first record."""
    ottla_cluster.create_topic("t")
    with ottla_cluster.admin() as brokers:
        assert append_batch(brokers, "t", 0, [Record(b"k", b"1", (), 0)]) == 0
        assert append_batch(brokers, "t", 0, [Record(None, b"2", (), 7)], codec=4) == 1
    rows = read_with_librdkafka(ottla_cluster.bootstrap, "t")
    assert [(row.value, row.timestamp) for row in rows] == [(b"1", 0), (b"2", 7)]


def test_refused_batch_is_an_error(ottla_cluster: Cluster) -> None:
    """The error has the broker's code."""
    ottla_cluster.create_topic("t", config={"max.message.bytes": "100"})
    with ottla_cluster.admin() as brokers, pytest.raises(ApiError) as caught:
        append_batch(brokers, "t", 0, [Record(None, b"x" * 200, (), 1)])
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
