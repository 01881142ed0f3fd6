"""The producer against a broker: futures, callbacks, serializers, partitioners, interceptors."""

import asyncio
import concurrent.futures
import dataclasses
import gc
import struct
import threading
import time
import weakref
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client import (
    AdminClient,
    Producer,
    ProducerInterceptor,
    ProducerRecord,
    RecordMetadata,
    Serdes,
)
from ottla.client.errors import ClientError, Closed, SerializationError, TimedOut
from ottla.client.producer.partitioners import murmur2_partition
from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.client.records import unsent
from ottla.testing import Cluster
from ottla.wire.records.records import iterate_batches


def producer_of(cluster: Cluster, **settings: Any) -> Producer:
    """Return a producer that does not linger; without idempotence librdkafka starts at once."""
    arguments = {
        "bootstrap_servers": cluster.bootstrap,
        "linger_ms": 0,
        "enable_idempotence": False,
    }
    return Producer(**(arguments | settings))


def records_of(cluster: Cluster, topic: str) -> list[ConsumedRecord]:
    """Return every record of a topic with three partitions."""
    records, ended = [], 0
    with RecordConsumer(cluster.bootstrap) as consumer:
        consumer.assign({(topic, number): 0 for number in range(3)})
        while ended < 3:
            for event in consumer.poll(10.0, limit=1):
                if isinstance(event, EndOfPartition):
                    ended += 1
                else:
                    records.append(event)
    return records


def test_future_has_the_position_of_the_record(cluster: Cluster, topic: str) -> None:
    """`result` returns topic, partition, offset and timestamp."""
    with producer_of(cluster) as producer:
        producer.send(topic, b"zero", partition=1).result(10)
        metadata = producer.send(topic, b"one", partition=1, timestamp=1_700_000_000_000).result(10)
    assert tuple(metadata) == (topic, 1, 1, 1_700_000_000_000)
    assert repr(metadata).startswith(f"RecordMetadata(topic={topic!r}, partition=1, offset=1")


def test_metadata_has_the_sizes_of_what_was_written(cluster: Cluster, topic: str) -> None:
    """They are the sizes of the serialized forms; -1 without a key or value, and for a failed
    record.
    """
    with producer_of(cluster, value_serializer="string") as producer:
        full = producer.send(topic, "ä", key=b"abc").result(10)
        empty = producer.send(topic, "", key=b"").result(10)
        without = producer.send(topic, None).result(10)
    assert (full.serialized_key_size, full.serialized_value_size) == (3, 2)
    assert (empty.serialized_key_size, empty.serialized_value_size) == (0, 0)
    assert (without.serialized_key_size, without.serialized_value_size) == (-1, -1)
    failed = unsent(topic, None)
    assert (failed.serialized_key_size, failed.serialized_value_size) == (-1, -1)


def test_headers_and_nulls_are_sent(cluster: Cluster, topic: str) -> None:
    """Headers keep their order; a value of None is a tombstone."""
    with producer_of(cluster) as producer:
        producer.send(topic, None, key="k", headers=[("a", b"1"), ("a", None)], partition=0)
    (record,) = records_of(cluster, topic)
    assert (record.key, record.value, record.headers) == (b"k", None, [("a", b"1"), ("a", None)])


def test_callback_is_called_without_another_call(cluster: Cluster, topic: str) -> None:
    """A background thread serves the report if the caller does something else."""
    called = threading.Event()
    results: list[Any] = []

    def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
        results.append((metadata, error))
        called.set()

    with producer_of(cluster) as producer:
        producer.send(topic, b"one", partition=2, on_delivery=delivered)
        assert called.wait(10)
    ((metadata, error),) = results
    assert (metadata.partition, error) == (2, None)


def test_futures_work_with_the_standard_library(cluster: Cluster, topic: str) -> None:
    """`concurrent.futures.wait` and callbacks of futures complete."""
    done: list[Any] = []
    with producer_of(cluster) as producer:
        futures = [producer.send(topic, b"%d" % number) for number in range(50)]
        futures[0].add_done_callback(done.append)
        finished, waiting = concurrent.futures.wait(futures, timeout=10)
    assert (len(finished), len(waiting)) == (50, 0)
    assert done == [futures[0]]
    assert not futures[0].cancel()
    assert futures[0].exception() is None


def test_futures_work_with_asyncio(cluster: Cluster, topic: str) -> None:
    """`asyncio.wrap_future` takes the future, because isinstance accepts it as a Future."""

    async def send(producer: Producer) -> Any:
        future: Any = producer.send(topic, b"one", partition=1)
        assert isinstance(future, concurrent.futures.Future)
        return await asyncio.wrap_future(future)

    with producer_of(cluster) as producer:
        assert asyncio.run(send(producer)).partition == 1


def test_finished_futures_are_freed(cluster: Cluster) -> None:
    """The garbage collector does not visit futures, so a finished one is in no reference cycle."""

    class Owner:
        """Refers to futures, and is referred to by their callbacks and tracebacks."""

    def use(producer: Producer, owner: Any) -> None:
        owner.sent = producer.send("strict", b"x", on_delivery=lambda *_: owner)
        owner.sent.add_done_callback(lambda _: owner)
        assert owner.sent.result(10).offset == 0
        owner.refused = producer.send("strict", b"x" * 1000, on_delivery=lambda *_: owner)
        owner.refused.add_done_callback(lambda _: owner)
        for _ in range(2):
            with pytest.raises(ApiError):
                owner.refused.result(10)

    cluster.create_topic("strict", config={"max.message.bytes": "200"})
    owner = Owner()
    freed = weakref.ref(owner)
    with producer_of(cluster) as producer:
        use(producer, owner)
        del owner
        gc.collect()
        assert freed() is None


def test_error_of_the_broker_is_in_the_future(cluster: Cluster) -> None:
    """The error has Kafka's code; the next record is sent."""
    cluster.create_topic("small", config={"max.message.bytes": "200"})
    with producer_of(cluster) as producer:
        large = producer.send("small", b"x" * 1000)
        with pytest.raises(ApiError) as caught:
            large.result(10)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert producer.send("small", b"x").result(10).offset == 0


def test_record_larger_than_a_request_fails_in_its_future(cluster: Cluster, topic: str) -> None:
    """As in Kafka, `send` returns a future that has failed, and the callback has the error."""
    errors: list[Any] = []
    with producer_of(cluster, max_request_size=1000) as producer:
        future = producer.send(topic, b"x" * 2000, on_delivery=lambda *words: errors.append(words))
        assert isinstance(future.exception(0), ApiError)
    ((metadata, error),) = errors
    assert metadata is None
    assert "max.request.size" in str(error)


def test_value_that_is_not_bytes_needs_a_serializer(cluster: Cluster, topic: str) -> None:
    """The error says which option to set."""
    with (
        producer_of(cluster) as producer,
        pytest.raises(SerializationError, match="value_serializer"),
    ):
        producer.send(topic, 7)


def test_serializers_write_what_kafkas_write(cluster: Cluster, topic: str) -> None:
    """Names, class names, serdes, functions and objects with `serialize` are serializers."""

    class Upper:
        def configure(self, configs: Any, is_key: bool) -> None:
            self.is_key = is_key

        def serialize(self, topic: str, value: str) -> bytes:
            return f"{topic}:{self.is_key}:{value.upper()}".encode()

    java = "org.apache.kafka.common.serialization.LongSerializer"
    for key, value in (
        ("string", Serdes.long()),
        (str.encode, java),
        (Serdes.string(), lambda number: struct.pack(">q", number)),
    ):
        with producer_of(cluster, key_serializer=key, value_serializer=value) as producer:
            producer.send(topic, 5, key="k", partition=0)
            producer.send(topic, None, key=None, partition=0)
    with producer_of(cluster, value_serializer=Upper()) as producer:
        producer.send(topic, "x", partition=0)
    *pairs, last = records_of(cluster, topic)
    assert [(record.key, record.value) for record in pairs] == [
        (b"k", b"\0" * 7 + b"\5"),
        (None, None),
    ] * 3
    assert last.value == f"{topic}:False:X".encode()


def test_serializer_error_names_topic_and_value(cluster: Cluster, topic: str) -> None:
    """Nothing is sent, and the message has the value."""
    with (
        producer_of(cluster, value_serializer=Serdes.long()) as producer,
        pytest.raises(SerializationError, match=rf"value 'seven'.*topic '{topic}'"),
    ):
        producer.send(topic, "seven")
    assert records_of(cluster, topic) == []


def test_keys_are_placed_as_java_places_them(cluster: Cluster, topic: str) -> None:
    """The partition is murmur2 of the key, in librdkafka and in our own function."""
    keys = [b"key-%d" % number for number in range(20)]
    with producer_of(cluster) as producer:
        placed = [producer.send(topic, b"", key=key) for key in keys]
        partitions = [future.result(10).partition for future in placed]
    assert partitions == [murmur2_partition(key, [0, 1, 2]) for key in keys]
    assert murmur2_partition(b"21", range(1000)) == (-973932308 & 0x7FFFFFFF) % 1000


def test_records_without_a_key_stay_together(cluster: Cluster, topic: str) -> None:
    """A batch of records without a key is in one partition (sticky, KIP-480)."""
    with producer_of(cluster, linger_ms=50, sticky_partitioning_linger_ms=1000) as producer:
        producer.send(topic, b"first").result(10)
        futures = [producer.send(topic, b"%d" % number) for number in range(20)]
        assert len({future.result(10).partition for future in futures}) == 1


def test_round_robin_uses_partitions_in_turn(cluster: Cluster, topic: str) -> None:
    """Keys do not matter."""
    with producer_of(cluster, partitioner="round_robin") as producer:
        futures = [producer.send(topic, b"", key=b"same") for _ in range(6)]
        assert [future.result(10).partition for future in futures] == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    "partitioner", ["sticky", "org.apache.kafka.clients.producer.UniformStickyPartitioner"]
)
def test_the_uniform_sticky_partitioner_ignores_keys(
    cluster: Cluster, topic: str, partitioner: str
) -> None:
    """Records of one key are in more than one partition; all would be in one by chance of 3^-39."""
    with producer_of(cluster, partitioner=partitioner) as producer:
        futures = [producer.send(topic, b"", key=b"same") for _ in range(40)]
        assert len({future.result(10).partition for future in futures}) > 1


def test_own_partitioner_is_configured_used_and_closed(cluster: Cluster, topic: str) -> None:
    """A class sees the record before and after serialization; a function sees the key."""
    calls: list[Any] = []

    class ByLength:
        def configure(self, configs: Any) -> None:
            calls.append(configs["client.id"])

        def partition(self, topic: str, *words: Any) -> int:
            key, key_bytes, _, _, topology = words
            calls.append((key, key_bytes))
            return len(key) % len(topology.partitions(topic))

        def close(self) -> None:
            calls.append("closed")

    settings = {"key_serializer": "string", "client_id": "me"}
    with producer_of(cluster, partitioner=ByLength, **settings) as producer:
        assert producer.send(topic, b"", key="abcd").result(10).partition == 1
    assert calls == ["me", ("abcd", b"abcd"), "closed"]
    with producer_of(cluster, partitioner=lambda key, partitions: partitions[-1]) as producer:
        assert producer.send(topic, b"").result(10).partition == 2
        assert producer.partitions_for(topic) == [0, 1, 2]


def test_partitioner_with_a_wrong_result_is_an_error(cluster: Cluster, topic: str) -> None:
    """The error names the result and the partitions of the topic."""
    with (
        producer_of(cluster, partitioner=lambda key, partitions: 3) as producer,
        pytest.raises(ClientError, match=r"returned 3 .* the partitions 0 to 2"),
    ):
        producer.send(topic, b"")


class Recorder(ProducerInterceptor):
    """Changes records and counts their results."""

    def __init__(self, mark: str = "a") -> None:
        self.mark = mark
        self.results: list[Any] = []
        self.is_closed = False

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Append the mark to the value."""
        return dataclasses.replace(record, value=record.value + self.mark)

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Remember the result."""
        self.results.append((metadata.offset, error))

    def close(self) -> None:
        """Remember the call."""
        self.is_closed = True


def test_interceptors_form_a_chain(cluster: Cluster, topic: str) -> None:
    """Each changes what the one before it returned; all observe the acknowledgement, then close."""
    chain = [Recorder("a"), Recorder("b")]
    settings = {"interceptors": chain, "value_serializer": "string"}
    with producer_of(cluster, **settings) as producer:
        assert producer.send(topic, "x", partition=0).result(10).offset == 0
    assert [record.value for record in records_of(cluster, topic)] == [b"xab"]
    assert [row.results for row in chain] == [[(0, None)]] * 2
    assert all(row.is_closed for row in chain)


def test_interceptor_that_raises_is_skipped(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is logged with the interceptor's name, and the record is sent."""

    class Broken(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            raise RuntimeError("no")

    settings = {"interceptors": [Broken, Recorder("b")], "value_serializer": "string"}
    with producer_of(cluster, **settings) as producer:
        producer.send(topic, "x", partition=0).result(10)
    assert [record.value for record in records_of(cluster, topic)] == [b"xb"]
    assert "Broken failed: RuntimeError('no')" in caplog.text


def test_interceptor_that_returns_none_is_named(cluster: Cluster, topic: str) -> None:
    """The notes' listing returns null; here the error says which interceptor did."""

    class Forgetful:
        def on_send(self, record: ProducerRecord) -> None:
            """Return nothing, by mistake."""

    with (
        producer_of(cluster, interceptors=[Forgetful()]) as producer,
        pytest.raises(ClientError, match=r"Forgetful returned None from on_send"),
    ):
        producer.send(topic, b"x")


def test_interceptors_observe_a_record_that_was_not_sent(cluster: Cluster, topic: str) -> None:
    """A serialization error is reported to the chain before it is raised."""
    recorder = Recorder()
    settings = {"interceptors": [recorder], "value_serializer": Serdes.long()}
    with producer_of(cluster, **settings) as producer, pytest.raises(SerializationError):
        producer.send(topic, "x")
    ((offset, error),) = recorder.results
    assert offset == -1
    assert isinstance(error, SerializationError)


def test_full_queue_blocks_and_then_times_out(cluster: Cluster) -> None:
    """Memory does not grow while no broker takes the records."""
    settings = {"bootstrap_servers": "127.0.0.1:1", "queue_buffering_max_messages": 10}
    producer = producer_of(cluster, **settings, max_block_ms=100, delivery_timeout_ms=300)
    with pytest.raises(TimedOut, match=r"max\.block\.ms"):
        for _ in range(100):
            producer.send("t", b"x")
    with pytest.raises(TimedOut, match="10 records were not acknowledged"):
        producer.flush(0.05)
    producer.close()


def test_queue_is_limited_by_its_bytes(cluster: Cluster) -> None:
    """`buffer.memory` bounds what is unsent, as in Kafka."""
    settings = {"bootstrap_servers": "127.0.0.1:1", "buffer_memory": 100 * 1024}
    producer = producer_of(cluster, **settings, max_block_ms=50, delivery_timeout_ms=300)
    sent: list[object] = []
    with pytest.raises(TimedOut, match=r"max\.block\.ms"):
        while len(sent) < 1000:
            sent.append(producer.send("t", b"x" * 1024))
    assert 90 <= len(sent) <= 110
    producer.close()


def test_close_with_a_timeout_ends(cluster: Cluster) -> None:
    """Records that no broker has taken fail with an error that says so."""
    producer = producer_of(cluster, bootstrap_servers="127.0.0.1:1")
    future = producer.send("t", b"x")
    with pytest.raises(TimedOut, match="1 records were not acknowledged"):
        producer.close(0.05)
    with pytest.raises(Closed, match="before the record was sent"):
        future.result(0)


def test_interceptor_sees_a_failed_record_without_a_partition(cluster: Cluster) -> None:
    """Its metadata has partition -1, as in Java, if the record failed before one was chosen."""
    seen: list[tuple[str, int, int]] = []

    class Observer(ProducerInterceptor):
        def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
            seen.append((metadata.topic, metadata.partition, metadata.offset))

    address = "127.0.0.1:1"
    producer = producer_of(cluster, bootstrap_servers=address, interceptors=[Observer()])
    producer.send("t", b"x")
    with pytest.raises(TimedOut):
        producer.close(0.05)
    assert seen == [("t", -1, -1)]


def test_interrupt_sends_what_is_queued(cluster: Cluster, topic: str) -> None:
    """After Ctrl-C a broker that responds gets the records that wait for a batch."""
    with pytest.raises(KeyboardInterrupt), producer_of(cluster) as producer:
        producer.send(topic, b"first", partition=0).result(10)
        producer.send(topic, b"second", partition=0)
        raise KeyboardInterrupt
    assert [record.value for record in records_of(cluster, topic)] == [b"first", b"second"]


def test_records_are_sent_while_the_queue_is_full(cluster: Cluster, topic: str) -> None:
    """`send` blocks until there is room, and every record arrives."""
    with producer_of(cluster, queue_buffering_max_messages=10) as producer:
        futures = [producer.send(topic, b"%d" % number) for number in range(500)]
    assert all(future.exception() is None for future in futures)
    assert len(records_of(cluster, topic)) == 500


def test_use_after_close_raises(cluster: Cluster, topic: str) -> None:
    """Every method says that the producer is closed; closing it again is allowed."""
    producer = producer_of(cluster)
    producer.close()
    producer.close()
    for call in (lambda: producer.send(topic, b""), producer.flush, producer.init_transactions):
        with pytest.raises(Closed, match="the producer is closed"):
            call()


def test_waiting_in_a_callback_is_an_error(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A callback that waits, also for the end of the producer, would wait for itself."""
    with producer_of(cluster) as producer:
        producer.send(topic, b"", on_delivery=lambda *_: producer.flush()).result(10)
        producer.send(topic, b"", on_delivery=lambda *_: producer.close()).result(10)
        producer.send(topic, b"").result(10)
    for call in ("flush()", "close()"):
        assert f"{call} in a callback would wait for itself" in caplog.text


def test_timestamps_that_librdkafka_would_change_are_refused(cluster: Cluster, topic: str) -> None:
    """librdkafka replaces a timestamp of 0 by the time of the call."""
    with producer_of(cluster) as plain, producer_of(cluster, key_serializer="string") as prepared:
        for producer in (plain, prepared):
            for timestamp in (0, -1):
                with pytest.raises(ClientError, match=f"timestamp={timestamp} cannot be sent"):
                    producer.send(topic, b"", timestamp=timestamp)
            assert producer.send(topic, b"", timestamp=1).result(10).timestamp == 1


def test_errors_of_connections_are_no_unacknowledged_records(cluster: Cluster) -> None:
    """A producer that has sent nothing closes without a TimedOut, although no broker responds."""
    settings = {"bootstrap_servers": "127.0.0.1:1", "reconnect_backoff_ms": 1}
    with producer_of(cluster, **settings) as producer:
        deadline = time.monotonic() + 30
        while not len(producer._producer) and time.monotonic() < deadline:
            with producer._server.exclusive():
                threading.Event().wait(0.05)
        assert len(producer._producer), "librdkafka has reported no error"
        producer.flush(0)
        producer.close(0)


def test_threads_share_a_producer(cluster: Cluster, topic: str) -> None:
    """Every record of every thread arrives once, and in the order of its thread."""
    with producer_of(cluster, enable_idempotence=True) as producer:

        def send(name: int) -> None:
            for number in range(200):
                producer.send(topic, b"%d" % number, key=b"%d" % name)

        threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = records_of(cluster, topic)
    for name in range(4):
        values = [int(row.value or b"") for row in records if row.key == b"%d" % name]
        assert values == list(range(200))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"group_id": "g"}, "'group.id' is an option of a consumer"),
        ({"batch_sise": 1}, "did you mean 'batch.size'"),
        ({"partitioner": "murmur3"}, "murmur3.* is not known"),
        ({"value_serializer": "my.package.Serializer"}, "my.package.Serializer.* is not known"),
        ({"interceptors": ["my.Interceptor"]}, "must not choose the code that runs"),
        ({"ssl_truststore_location": "a.jks"}, "Java key store"),
    ],
)
def test_wrong_settings_are_explained(
    cluster: Cluster, settings: dict[str, Any], sentence: str
) -> None:
    """The error names the option and the remedy, and no thread of the producer is left."""
    before = threading.active_count()
    with pytest.raises((ConfigError, ClientError), match=sentence):
        producer_of(cluster, **settings)
    assert threading.active_count() <= before


@pytest.mark.parametrize("number, codec", [*enumerate(["none", "gzip", "snappy", "lz4", "zstd"])])
def test_batches_are_compressed(cluster: Cluster, topic: str, number: int, codec: str) -> None:
    """compression.type chooses the codec of the batches in the broker's log."""
    with producer_of(cluster, compression_type=codec, linger_ms=20) as producer:
        for _ in range(20):
            producer.send(topic, b"a" * 100, partition=0)
    (file,) = (cluster.data / f"{topic}-0").glob("*.log")
    codecs = {header.compression for _, header in iterate_batches(file.read_bytes())}
    assert codecs == {number}


def test_acks_decide_what_is_known(cluster: Cluster, topic: str) -> None:
    """With acks=0 the offset is not known; with 1 and all it is."""
    offsets = []
    for acks in (0, 1, "all"):
        with producer_of(cluster, acks=acks) as producer:
            offsets.append(producer.send(topic, b"a", partition=0).result(10).offset)
    assert offsets == [-1, 1, 2]


def test_all_acks_wait_for_the_in_sync_replicas() -> None:
    """With two replicas required and one alive, only acks=all is refused; `retries` repeats it."""
    with Cluster(brokers=2, options={"replica.fetch.backoff.ms": "20"}) as pair:
        config = {"min.insync.replicas": "2"}
        pair.create_topic("careful", replication_factor=2, config=config)
        pair.wait_in_sync("careful")
        (follower,) = set(pair.brokers) - {pair.leader("careful")}
        pair.kill(follower)
        pair.expire_session(follower)
        with AdminClient(bootstrap_servers=pair.bootstrap) as admin:
            while len(admin.describe_topic("careful").partitions[0].isr) > 1:
                pass
        for acks, offset in ((0, -1), (1, 1)):
            with producer_of(pair, acks=acks) as producer:
                assert producer.send("careful", b"a").result(10).offset == offset
        with producer_of(pair, acks="all", retries=0) as producer:
            error = producer.send("careful", b"a").exception(10)
        assert isinstance(error, ApiError)
        assert error.code is ErrorCode.NOT_ENOUGH_REPLICAS
        with producer_of(pair, acks="all", retry_backoff_ms=10) as producer:
            future = producer.send("careful", b"b")
            with pytest.raises(TimeoutError):
                future.result(0.1)
            pair.restart(follower)
            assert future.result(20).offset == 2


def test_idempotence_numbers_the_batches(cluster: Cluster, topic: str) -> None:
    """A batch has the producer's id with enable.idempotence, which acks=all allows, and -1 without."""
    for partition, settings in enumerate(({}, {"acks": 1}, {"enable_idempotence": False})):
        words = {"bootstrap_servers": cluster.bootstrap, "linger_ms": 0}
        with Producer(words | settings) as producer:
            producer.send(topic, b"a", partition=partition).result(10)
    ids = []
    for partition in range(3):
        (file,) = (cluster.data / f"{topic}-{partition}").glob("*.log")
        ids += [header.producer_id for _, header in iterate_batches(file.read_bytes())]
    assert ids[0] >= 0
    assert ids[1:] == [-1, -1]


@pytest.mark.parametrize("length", [250, 600])
def test_topic_whose_name_is_too_long_is_an_invalid_topic(cluster: Cluster, length: int) -> None:
    """librdkafka refuses one that is much too long with an error that names nothing."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        future = producer.send("a" * length, b"x")
        with pytest.raises(ApiError, match="The topic name is not allowed") as caught:
            future.result(20)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
