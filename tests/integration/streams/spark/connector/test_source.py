"""Planners and tasks of the source against a real broker, called as by Spark."""

from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from pyspark.cloudpickle import dumps, loads
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.groups import describe_group
from ottla.client.admin.offsets import LATEST, committed_offsets, list_offsets
from ottla.client.admin.records import delete_records
from ottla.client.admin.topics import delete_topic
from ottla.client.config.access import ClusterAccess
from ottla.client.errors import NotReachable
from ottla.streams.spark.connector import micro_batches, shadow_group
from ottla.streams.spark.connector import source as source_module
from ottla.streams.spark.connector.ranges import from_json, to_json, topic_ids_in
from ottla.streams.spark.connector.source import BatchReader, OttlaSource, StreamReader
from ottla.testing.cluster import Cluster
from tests.integration.streams.spark.rows import EPOCH, struct, write

ALL = ReadAllAvailable()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make idle polls return immediately."""
    monkeypatch.setattr(micro_batches, "_IDLE_PAUSES_S", (0.0,))


def _source(cluster: Cluster, **options: str) -> OttlaSource:
    """Return the source as Spark creates it, with option names in lower case."""
    all_options = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": "flights"} | options
    return OttlaSource({name.lower(): text for name, text in all_options.items() if text})


def _batch(cluster: Cluster, **options: str) -> list[tuple[int, int]]:
    """Return partition and offset of all records in a batch read, task by task."""
    source = _source(cluster, **options)
    reader = source.reader(source.schema())
    # Spark pickles reader and tasks on their way to the executors.
    reader, tasks = loads(dumps((reader, reader.partitions())))
    result: list[tuple[int, int]] = []
    for task in tasks:
        for columns in reader.read(task):
            rows = columns.select(["partition", "offset"]).to_pylist()
            result += [(row["partition"], row["offset"]) for row in rows]
    return result


def _offsets(*ranges: range) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, item in enumerate(ranges) for offset in item]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (range(20), range(10))),
        ({"startingOffsets": '{"flights": {"0": 15, "1": -2}}'}, (range(15, 20), range(10))),
        ({"endingOffsets": '{"flights": {"0": 3, "1": -1}}'}, (range(3), range(10))),
        ({"startingTimestamp": str(EPOCH + 7500)}, (range(8, 20), range(8, 10))),
        ({"endingTimestamp": str(EPOCH + 12_000)}, (range(12), range(10))),
        (
            {"startingOffsetsByTimestamp": f'{{"flights": {{"0": {EPOCH + 19_000}, "1": 0}}}}'},
            (range(19, 20), range(10)),
        ),
        ({"subscribe": "", "assign": '{"flights": [1]}'}, (range(0), range(10))),
        ({"subscribe": "", "subscribePattern": "fl.*"}, (range(20), range(10))),
        ({"subscribe": "", "subscribePattern": "light"}, ()),
        ({"minPartitions": "7"}, (range(20), range(10))),
        ({"maxRecordsPerPartition": "4"}, (range(20), range(10))),
    ],
)
def test_a_batch_reads_the_selected_records(
    flights: Cluster, options: dict[str, str], expected: tuple[range, ...]
) -> None:
    """Topics, offsets and times select the records; splitting does not change them."""
    assert _batch(flights, **options) == _offsets(*expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "fligths"}, "Topic 'fligths'"),
        ({"subscribe": "", "assign": '{"flights": [2]}'}, "'flights' has no partition 2"),
        ({"startingOffsets": '{"flights": {"0": 1}}'}, "does not name partition 1 of 'flights'"),
        ({"endingOffsets": '{"flights": {"0": 1, "1": 1, "2": 1}}'}, "partition 2 of 'flights'"),
        ({"startingTimestamp": str(EPOCH + 15_000)}, "flights-1 has no record of"),
        ({"endingOffsets": '{"flights": {"0": 21, "1": 1}}'}, "flights-0 has offsets 0 to 20"),
    ],
)
def test_a_batch_rejects_missing_topics_and_offsets(
    flights: Cluster, options: dict[str, str], message: str
) -> None:
    """The error names topic and partition."""
    with pytest.raises((ApiError, ConfigError), match=message):
        _batch(flights, **options)


def test_missing_offsets_can_be_ignored(flights: Cluster) -> None:
    """With failOnDataLoss=false missing offsets are skipped; times after the end can mean the end."""
    beyond = '{"flights": {"0": 99, "1": 5}}'
    assert _batch(flights, endingOffsets=beyond, failOnDataLoss="false") == _offsets(
        range(20), range(5)
    )
    late = {
        "startingTimestamp": str(EPOCH + 15_000),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    assert _batch(flights, **late) == _offsets(range(15, 20), range(0))


def test_columns_are_those_of_sparks_connector(flights: Cluster) -> None:
    """Names, types and order are equal; headers are optional; `schema` can select fewer columns."""
    plain = _source(flights).schema()
    assert plain.fieldNames() == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType"
    ]  # fmt: skip
    with_headers = _source(flights, includeHeaders="true").schema()
    kind = with_headers["headers"].dataType.simpleString()
    assert kind == "array<struct<key:string,value:binary>>"
    few = struct("offset bigint, value binary")
    reader = _source(flights).reader(few)
    first = next(iter(reader.read(reader.partitions()[0])))
    assert first.schema == pa.schema([("offset", pa.int64()), ("value", pa.binary())])
    for wrong in ("offset int", "colour string"):
        with pytest.raises(ConfigError, match="There is no column"):
            _source(flights).reader(struct(wrong))


Open = Callable[..., Any]


@pytest.fixture
def stream(flights: Cluster) -> Iterator[Open]:
    """A function that opens stream readers of `flights`, which are stopped after the test."""
    readers: list[Any] = []

    def open_stream(**options: str) -> Any:
        source = _source(flights, **options)
        readers.append(source.streamReader(source.schema()))
        return readers[-1]

    yield open_stream
    for reader in readers:
        reader.stop()


def _named(offsets: Any) -> Any:
    """Return the offsets by topic and partition, without the topic ids."""
    return to_json(from_json(offsets))


def _sizes(reader: StreamReader, start: Any, end: Any) -> dict[int, int]:
    ranges = [task.range for task in reader.partitions(start, end)]
    return {item.partition: item.size for item in ranges}


def test_a_stream_starts_at_the_end_by_default(stream: Open) -> None:
    """The default of startingOffsets is latest, as in Spark's connector."""
    assert _named(stream().initialOffset()) == {"flights": {"0": 20, "1": 10}}
    earliest = stream(startingOffsets="earliest")
    assert _named(earliest.initialOffset()) == {"flights": {"0": 0, "1": 0}}


def test_a_stream_reads_new_records(stream: Open, flights: Cluster) -> None:
    """A batch ends at the partitions' ends when it is planned; without new records it is empty."""
    reader = stream(startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert _named(end) == {"flights": {"0": 20, "1": 10}}
    assert _sizes(reader, start, end) == {0: 20, 1: 10}
    assert reader.latestOffset(end, ALL) == end
    write(flights, "flights", 1, 4, first=10)
    later = reader.latestOffset(end, ALL)
    assert _sizes(reader, end, later) == {1: 4}
    assert reader.reportLatestOffset() == later
    reader.commit(later)


def test_a_trigger_is_limited_by_records(stream: Open) -> None:
    """The limit is shared between partitions, and all records are read eventually."""
    reader = stream(startingOffsets="earliest", maxOffsetsPerTrigger="9")
    assert reader.getDefaultReadLimit() == ReadMaxRows(9)
    position = reader.initialOffset()
    received = []
    while True:
        end = reader.latestOffset(position, reader.getDefaultReadLimit())
        if end == position:
            break
        received.append(_sizes(reader, position, end))
        position = end
    assert received[0] == {0: 6, 1: 3}
    assert all(sum(sizes.values()) <= 9 + 2 for sizes in received)
    assert sum(sum(sizes.values()) for sizes in received) == 30


def test_a_trigger_is_limited_by_bytes(stream: Open) -> None:
    """The limit is approximate; of a limit of bytes and one of records, the lower applies."""
    everything = '{"flights": {"0": 0, "1": 0}}'
    received = {}
    for name, options in {
        "half": {"maxBytesPerTrigger": "200"},
        "all": {"maxBytesPerTrigger": "1000000"},
        "one": {"maxBytesPerTrigger": "1"},
        "rows": {"maxBytesPerTrigger": "1000000", "maxOffsetsPerTrigger": "6"},
        "bytes": {"maxBytesPerTrigger": "1", "maxOffsetsPerTrigger": "6"},
    }.items():
        reader = stream(startingOffsets=everything, **options)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert _named(reader.latestOffset(start, ALL)) == {"flights": {"0": 20, "1": 10}}
        received[name] = tuple(_sizes(reader, start, end).values())
    assert stream(maxBytesPerTrigger="1").getDefaultReadLimit() == ReadMaxBytes(1)
    assert (received["all"], received["one"]) == ((20, 10), (1, 1))
    assert (received["rows"], received["bytes"]) == ((4, 2), (1, 1))
    assert 2 < sum(received["half"]) < 30


def test_a_trigger_waits_for_a_minimum(
    stream: Open, flights: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait is at most maxTriggerDelay, and does not apply to the first and last batch."""
    reader = stream(startingOffsets="earliest", minOffsetsPerTrigger="5", maxTriggerDelay="10s")
    end = reader.latestOffset(reader.initialOffset(), ALL)
    assert _named(end) == {"flights": {"0": 20, "1": 10}}
    write(flights, "flights", 1, 4, first=10)
    assert reader.latestOffset(end, ALL) == end
    write(flights, "flights", 0, 1, first=20)
    more = reader.latestOffset(end, ALL)
    assert _named(more) == {"flights": {"0": 21, "1": 14}}
    write(flights, "flights", 0, 1, first=21)
    assert reader.latestOffset(more, ALL) == more
    batches = reader.batches
    monkeypatch.setattr(batches, "_triggered_at", batches._triggered_at - 10)
    last = reader.latestOffset(more, ALL)
    assert _named(last) == {"flights": {"0": 22, "1": 14}}
    write(flights, "flights", 0, 1, first=22)
    reader.prepareForTriggerAvailableNow()
    assert _named(reader.latestOffset(last, ALL)) == {"flights": {"0": 23, "1": 14}}


def test_unread_records_that_were_deleted_are_an_error(stream: Open, flights: Cluster) -> None:
    """The error has the offsets and the fix; with failOnDataLoss=false the offsets are skipped."""
    with flights.admin() as brokers:
        delete_records(brokers, {("flights", 0): 8})
    start, end = {"flights": {"0": 3, "1": 2}}, {"flights": {"0": 20, "1": 10}}
    with pytest.raises(ApiError) as caught:
        stream().partitions(start, end)
    for part in ("flights-0 begins at 8: offsets 3 to 7", "failOnDataLoss=false", "checkpointLoc"):
        assert part in str(caught.value)
    assert _sizes(stream(failOnDataLoss="false"), start, end) == {0: 12, 1: 8}


def _lag(cluster: Cluster, group_id: str) -> dict[int, int]:
    with cluster.admin() as brokers:
        result = committed_offsets(brokers, group_id)
        ends = list_offsets(brokers, dict.fromkeys(result, LATEST))
        return {key[1]: ends[key].offset - result[key].offset for key in result}


def test_progress_is_committed_as_a_consumer_group(
    stream: Open, flights: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of a batch is committed when it is planned, so the lag is the unread part."""
    monkeypatch.setattr(shadow_group, "_INTERVAL_S", 0.0)
    reader = stream(
        startingOffsets="earliest", maxOffsetsPerTrigger="15", **{"kafka.group.id": "pipeline"}
    )
    position = reader.initialOffset()
    lags = []
    for _ in range(3):
        position = reader.latestOffset(position, reader.getDefaultReadLimit())
        lags.append(_lag(flights, "pipeline"))
    assert lags == [{0: 20, 1: 10}, {0: 10, 1: 5}, {0: 0, 1: 0}]
    write(flights, "flights", 0, 5, first=20)
    assert _lag(flights, "pipeline") == {0: 5, 1: 0}
    reader.commit(reader.latestOffset(position, ALL))
    assert _lag(flights, "pipeline") == {0: 0, 1: 0}
    with flights.admin() as brokers:
        assert describe_group(brokers, "pipeline").state == "Empty"


def test_progress_that_cannot_be_committed_is_only_logged(
    stream: Open, flights: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A group with members belongs to others; the query continues, and the log has one line."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": flights.bootstrap, "group.id": "taken"}
    )
    consumer.subscribe(["flights"])
    while not consumer.assignment():
        consumer.poll(0.05)
    reader = stream(startingOffsets="earliest", **{"group.id": "taken"})
    start = reader.initialOffset()
    for _ in range(3):
        assert _named(reader.latestOffset(start, ALL)) == {"flights": {"0": 20, "1": 10}}
    consumer.close()
    (line,) = [record.getMessage() for record in caplog.records if "shadow" in record.name]
    assert "'taken'" in line
    assert "another kafka.group.id" in line


def test_progress_is_committed_soon_after_a_broker_restart(
    flights: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The long pause is only for failures that need a fix; the outage is logged once."""
    monkeypatch.setattr(shadow_group, "_SHORT_REST_S", 0.0)
    group = shadow_group.ShadowGroup(ClusterAccess(flights.bootstrap), "shown", "client", "ours")
    with monkeypatch.context() as away:
        away.setattr(shadow_group, "commit_offsets", _refuse)
        for _ in range(3):
            group.follow({("flights", 0): 7})
    group.follow({("flights", 0): 7})
    group.close()
    with flights.admin() as brokers:
        actual = committed_offsets(brokers, "shown")["flights", 0]
        assert (actual.offset, actual.metadata) == (7, "ours")
    assert len([record for record in caplog.records if "shadow" in record.name]) == 1


def _refuse(*words: Any) -> None:
    raise NotReachable("nothing listens")


def test_available_now_ends_at_the_offsets_of_its_start(stream: Open, flights: Cluster) -> None:
    """Records that arrive after the start of the query are not read."""
    reader = stream(startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    write(flights, "flights", 0, 5, first=20)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    assert _named(end) == {"flights": {"0": 20, "1": 10}}
    ahead = {"flights": {"0": 25, "1": 10}}
    assert reader.latestOffset(ahead, ALL) == ahead


def test_new_topics_and_partitions_are_read_from_their_beginning(
    stream: Open, flights: Cluster
) -> None:
    """A stream with a pattern discovers topics that are created later."""
    reader = stream(subscribe="", subscribePattern="fl.*", maxOffsetsPerTrigger="100")
    start = reader.initialOffset()
    flights.create_topic("fleets")
    write(flights, "fleets", 0, 6)
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert _named(end) == {"fleets": {"0": 6}, "flights": {"0": 20, "1": 10}}
    assert _sizes(reader, start, end) == {0: 6}


def test_read_records_that_disappeared_are_an_error(stream: Open) -> None:
    """A re-created topic or lost partitions are a loss of data unless failOnDataLoss is false."""
    ahead = {"flights": {"0": 25, "1": 10}}
    gone = {"flights": {"0": 20, "1": 10}, "old": {"0": 1}}
    now = {"flights": {"0": 20, "1": 10}}
    for start, message in ((ahead, "flights-0 ends at 20"), (gone, "old-0 no longer exists")):
        strict = stream()
        with pytest.raises(ApiError, match=message) as caught:
            strict.partitions(start, now)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
        lenient = stream(failOnDataLoss="false")
        assert lenient.partitions(start, now) == []


def _create_again(flights: Cluster, count: int) -> None:
    with flights.admin() as brokers:
        delete_topic(brokers, "flights")
    flights.create_topic("flights", partitions=2)
    write(flights, "flights", 0, count)


def test_a_topic_that_is_created_again_is_read_from_its_beginning(
    stream: Open, flights: Cluster
) -> None:
    """Also if it has more records than the former topic: it is another topic."""
    strict, lenient = stream(), stream(failOnDataLoss="false")
    read = {"flights": {"0": 20, "1": 10}}
    assert strict.latestOffset(read, ALL) == lenient.latestOffset(read, ALL) == read
    _create_again(flights, 30)
    begin = strict.latestOffset(read, ALL)
    assert _named(begin) == {"flights": {"0": 0, "1": 0}}
    with pytest.raises(ApiError, match="it was read up to 20: the topic was deleted and created"):
        strict.partitions(read, begin)
    assert lenient.latestOffset(read, ALL) == begin
    assert lenient.partitions(read, begin) == []
    end = lenient.latestOffset(begin, ALL)
    assert _sizes(lenient, begin, end) == {0: 30}


@pytest.mark.parametrize("is_available_now", [False, True])
def test_a_topic_that_is_created_again_while_the_query_is_stopped(
    stream: Open, flights: Cluster, is_available_now: bool
) -> None:
    """The checkpoint has the topic's id: the new topic is read from its beginning, or the query
    fails with a remedy.
    """
    stopped = stream(startingOffsets="earliest")
    read = stopped.latestOffset(stopped.initialOffset(), ALL)
    stopped.stop()
    _create_again(flights, 30)
    strict, lenient = stream(), stream(failOnDataLoss="false", maxOffsetsPerTrigger="100")
    for reader in (strict, lenient) if is_available_now else ():
        reader.prepareForTriggerAvailableNow()
    begin = strict.latestOffset(read, ALL)
    with pytest.raises(ApiError, match=r"read up to 20: the topic was .* created again") as caught:
        strict.partitions(read, begin)
    assert "failOnDataLoss=false" in str(caught.value)
    assert lenient.latestOffset(read, ReadMaxRows(100)) == begin
    assert lenient.partitions(read, begin) == []
    end = lenient.latestOffset(begin, ReadMaxRows(100))
    assert _sizes(lenient, begin, end) == {0: 30}
    assert lenient.latestOffset(end, ReadMaxRows(100)) == end


def test_a_planned_batch_of_a_topic_that_was_created_again_reads_nothing(
    stream: Open, flights: Cluster
) -> None:
    """Spark repeats the last batch after a restart: the new topic has other records there."""
    stopped = stream(startingOffsets="earliest")
    start = stopped.initialOffset()
    middle = to_json({("flights", 0): 5, ("flights", 1): 5}, topic_ids_in(start))
    end = stopped.latestOffset(start, ALL)
    stopped.stop()
    _create_again(flights, 30)
    with pytest.raises(ApiError, match="read up to 5: the topic was deleted and created again"):
        stream().partitions(middle, end)
    lenient = stream(failOnDataLoss="false")
    assert lenient.partitions(middle, end) == []
    begin = lenient.latestOffset(end, ALL)
    assert _named(begin) == {"flights": {"0": 0, "1": 0}}
    assert topic_ids_in(begin) != topic_ids_in(end)


def test_a_checkpoint_without_topic_ids_is_continued(stream: Open, flights: Cluster) -> None:
    """Offsets of earlier versions have no ids; they are added with the next records."""
    reader, former = stream(), {"flights": {"0": 18, "1": 10}, "@later": {"flights": "any"}}
    end = reader.latestOffset(former, ALL)
    assert _sizes(reader, former, end) == {0: 2}
    assert set(topic_ids_in(end)) == {"flights"}
    idle = {"flights": {"0": 20, "1": 10}}
    assert reader.latestOffset(idle, ALL) == idle


def test_available_now_notices_a_topic_that_was_created_again(
    stream: Open, flights: Cluster
) -> None:
    """A query that starts beyond the end of its topic does not end as if all was read."""
    _create_again(flights, 5)
    reader = stream()
    reader.prepareForTriggerAvailableNow()
    read = {"flights": {"0": 20, "1": 10}}
    end = reader.latestOffset(read, ALL)
    assert _named(end) == {"flights": {"0": 5, "1": 0}}
    with pytest.raises(ApiError, match="deleted and created again"):
        reader.partitions(read, end)


def test_options_are_validated_when_the_reader_is_created(stream: Open) -> None:
    """An unknown option is rejected before any read."""
    with pytest.raises(ConfigError, match="Is startingOffsets meant"):
        stream(startingOffset="latest")


def test_the_readers_have_sparks_classes() -> None:
    """Spark requires these classes and names."""
    assert OttlaSource.name() == "ottla"
    assert issubclass(BatchReader, source_module.DataSourceReader)
