"""Ranges of offsets are fetched completely and once, whatever the brokers do."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client import fetcher as fetcher_module
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable, TimedOut
from ottla.client.fetcher import Fetcher, FetchSettings
from ottla.wire.messages.fetch import AbortedTransaction
from ottla.wire.records.columnar import ColumnDecoder
from ottla.wire.records.control import ControlType, EndTransactionMarker, encode_marker
from ottla.wire.records.records import Record
from tests.unit.client.topics import Topic


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the delays between attempts."""
    monkeypatch.setattr(fetcher_module, "_PAUSE_S", 0.001)


@pytest.fixture
def topic(broker: Any) -> Topic:
    """Return a topic of 100 records in batches of 10."""
    served = Topic("t").serve_from(broker)
    served.fill(100)
    return served


def _fetch(
    broker: Any, start: int, end: int, settings: FetchSettings | None = None, topic: str = "t"
) -> Iterator[int]:
    settings = settings or FetchSettings(timeout_s=5.0)
    with Brokers(broker.bootstrap, timeout_s=5.0) as brokers, Fetcher(brokers, settings) as fetcher:
        decoder = ColumnDecoder(topic, 0, ["offset"])
        for result in fetcher.fetch(decoder, start, end):
            yield from result.column("offset").to_pylist()


def test_range_is_fetched_completely_and_once(broker: Any, topic: Topic) -> None:
    """Small responses are joined, and a range may begin and end within a batch."""
    assert list(_fetch(broker, 3, 97, FetchSettings(fetch_bytes=500))) == list(range(3, 97))


def test_next_request_is_sent_before_the_response_is_decoded(broker: Any, topic: Topic) -> None:
    """While the caller gets the first records, the next fetch has already been sent."""
    records = _fetch(broker, 0, 100, FetchSettings(fetch_bytes=100))
    assert next(records) == 0
    # The broker's thread may still be reading the request: the second response proves that it
    # arrived.
    assert next(item for item in records if item == 10) == 10
    fetches = [request for name, _, request in broker.requests if name == "Fetch"]
    assert fetches[1].topics[0].partitions[0].fetch_offset == 10


def test_batch_larger_than_a_fetch_is_read(broker: Any) -> None:
    """The first batch of a response is complete, whatever its size (KIP-74)."""
    topic = Topic("t").serve_from(broker)
    topic.append([Record(None, b"x" * 50_000)])
    topic.fill(5)
    assert list(_fetch(broker, 0, 6, FetchSettings(fetch_bytes=100))) == list(range(6))


def test_empty_range_sends_no_request(broker: Any, topic: Topic) -> None:
    """If the end is not after the start, no request is sent."""
    assert list(_fetch(broker, 5, 5)) == []
    assert broker.requests == []


@pytest.mark.parametrize(
    "failure",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        None,
    ],
)
def test_transient_failures_lose_no_record(
    broker: Any, topic: Topic, failure: ErrorCode | None
) -> None:
    """Leaders that move and connections that break are retried."""
    topic.failures["Fetch"] = [ErrorCode.NONE, failure, ErrorCode.NONE, failure]
    records = list(_fetch(broker, 0, 100, FetchSettings(fetch_bytes=300, timeout_s=5.0)))
    assert records == list(range(100))


def test_the_leader_is_followed(new_broker: Callable[..., Any]) -> None:
    """The remaining records are fetched from the new leader."""
    old, new = new_broker(node_id=0), new_broker(node_id=1)
    old.peers = new.peers = [old, new]
    topic = Topic("t").serve_from(old, new)
    topic.fill(50)
    records = _fetch(old, 0, 50, FetchSettings(fetch_bytes=100, timeout_s=5.0))
    assert next(records) == 0
    topic.leader = 1
    assert list(records) == list(range(1, 50))
    assert "Fetch" in new.names()


def test_permanent_error_is_raised(broker: Any, topic: Topic) -> None:
    """An error that is not retriable is raised at once."""
    topic.failures["Fetch"] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(ApiError) as caught:
        list(_fetch(broker, 0, 100))
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_topic_that_does_not_exist_is_named(broker: Any, topic: Topic) -> None:
    """The metadata has no such topic."""
    with pytest.raises(ApiError, match="nothing"):
        list(_fetch(broker, 0, 1, FetchSettings(timeout_s=0.05), topic="nothing"))


def test_persistent_failures_are_raised(broker: Any, topic: Topic) -> None:
    """After the timeout the last failure is raised."""
    topic.failures["Fetch"] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 10_000
    with pytest.raises(ApiError) as caught:
        list(_fetch(broker, 0, 100, FetchSettings(timeout_s=0.1)))
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    topic.failures["Fetch"] = [None] * 10_000
    with pytest.raises(NotReachable):
        list(_fetch(broker, 0, 100, FetchSettings(timeout_s=0.1)))


def test_missing_records_time_out(broker: Any, topic: Topic) -> None:
    """If the range ends after the partition, the fetcher waits until the timeout."""
    with pytest.raises(TimedOut, match="t-0 at offset 100"):
        list(_fetch(broker, 90, 101, FetchSettings(timeout_s=0.1, max_wait_ms=1)))


def test_lost_records_are_an_error_or_skipped(broker: Any, topic: Topic) -> None:
    """Records that retention deleted raise an error, or are skipped if the caller allows it."""
    topic.start = 40
    with pytest.raises(ApiError, match="begins at 40") as caught:
        list(_fetch(broker, 10, 60))
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    skipping = FetchSettings(timeout_s=5.0, skips_lost=True)
    assert list(_fetch(broker, 10, 60, skipping)) == list(range(40, 60))
    assert list(_fetch(broker, 10, 20, skipping)) == []
    assert list(_fetch(broker, 200, 300, skipping)) == []


def test_read_committed_skips_aborted_transactions(broker: Any) -> None:
    """The broker's list of aborted transactions is applied, only with read_committed."""
    topic = Topic("t").serve_from(broker)
    topic.append([Record(None, b"a")], producer_id=9, producer_epoch=0, transactional=True)
    marker = EndTransactionMarker(ControlType.ABORT, 0)
    topic.batches[0].append(
        bytes(encode_marker(marker, producer_id=9, producer_epoch=0, timestamp=1, base_offset=1))
    )
    topic.append([Record(None, b"b")])
    topic.aborted = [AbortedTransaction(producer_id=9, first_offset=0)]
    assert list(_fetch(broker, 0, 3)) == [0, 2]
    committed = FetchSettings(read_committed=True, timeout_s=5.0)
    assert list(_fetch(broker, 0, 3, committed)) == [2]


def test_abandoned_range_does_not_affect_the_next_one(broker: Any, topic: Topic) -> None:
    """Responses to an abandoned range are not taken for the next one's."""
    settings = FetchSettings(fetch_bytes=100, timeout_s=5.0)
    with Brokers(broker.bootstrap) as brokers, Fetcher(brokers, settings) as fetcher:
        decoder = ColumnDecoder("t", 0, ["offset"])
        abandoned = fetcher.fetch(decoder, 0, 100)
        next(abandoned)
        del abandoned
        offsets: list[int] = []
        for batch in fetcher.fetch(decoder, 70, 100):
            offsets += batch.column("offset").to_pylist()
    assert offsets == list(range(70, 100))
