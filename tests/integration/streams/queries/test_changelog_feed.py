"""A changelog is read from its beginning, up to the last stable offset."""

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from ottla.client.config.access import ClusterAccess
from ottla.client.raw.consumer import ConsumedRecord
from ottla.streams.model.errors import StreamsError
from ottla.streams.queries.changelog_feed import ChangelogFeed
from ottla.testing.cluster import Cluster

_PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Cluster]:
    """A broker."""
    with Cluster() as cluster:
        yield cluster


def _producer(broker: Cluster, **settings: Any) -> confluent_kafka.Producer:
    return confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, **settings})


def test_existing_records_are_read_first(broker: Cluster) -> None:
    """All partitions are read, without records of open transactions."""
    broker.create_topic("log", partitions=2)
    plain = _producer(broker)
    for number in range(10):
        plain.produce("log", str(number), str(number), partition=number % 2)
    plain.flush()
    open_one = _producer(broker, **{"transactional.id": "open"})
    open_one.init_transactions(_PATIENCE_S)
    open_one.begin_transaction()
    open_one.produce("log", "never", "never", partition=0)
    open_one.flush()
    consumed_records: list[ConsumedRecord] = []
    feed = ChangelogFeed(ClusterAccess(broker.bootstrap), "log", 2, consumed_records.extend)
    feed.await_caught_up(_PATIENCE_S)
    assert feed.is_open
    feed.close()
    assert not feed.is_open
    open_one.abort_transaction(_PATIENCE_S)
    assert sorted(int(consumed_record.key or b"") for consumed_record in consumed_records) == list(
        range(10)
    )


def test_a_feed_without_a_broker_times_out() -> None:
    """The error names the topic."""
    feed = ChangelogFeed(ClusterAccess("127.0.0.1:1"), "log", 1, lambda records: None)
    with pytest.raises(StreamsError, match="log could not be read in"):
        feed.await_caught_up(0.3)
    feed.close()
