"""Faults of a running application: broker restarts, unreadable records, and schema changes."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.base.errors import ConfigError
from ottla.client.admin.offsets import committed_offsets
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.streams import Materialized, SchemaRegistry, Serde, Serdes, StreamsBuilder, Topology
from ottla.streams.kafka_streams import KafkaStreams, State
from ottla.streams.model.errors import StreamsError
from ottla.streams.settings.handlers import ExceptionHandlers, LogAndContinueExceptionHandler
from ottla.streams.task.task import TopicRecord
from ottla.testing.cluster import Cluster
from ottla.testing.process import BrokerProcess
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.spark import scenarios
from tests.spark.processes import PATIENCE_S, Reader, committed, dice, reading, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.alone]

_TEXT = Serdes.string()
_START = 1_700_000_000_000


def _app(
    topology: Topology, spark: SparkSession, bootstrap: str, name: str, folder: Path, **config: Any
) -> KafkaStreams:
    settings = {"heartbeat_interval_ms": 200, "state_dir": str(folder), **config}
    return KafkaStreams(
        topology, application_id=name, bootstrap_servers=bootstrap, spark=spark, **settings
    )


def _await(app: KafkaStreams, ask: Callable[[], bool]) -> None:
    """Wait until the condition is true; raise the application's error if it ends before."""
    wait_until(lambda: app.state.is_final or ask(), lambda: f"the application is {app.state.name}")
    if app.error is not None:
        raise app.error


def _await_records(app: KafkaStreams, reader: Reader, count: int) -> None:
    """Wait for the number of different records; raise the application's error if it ends before."""

    def are_there() -> bool:
        reader.read(0.05)
        return len(reader.seen) >= count

    _await(app, are_there)


def _create(broker: Cluster, *topics: str) -> None:
    for topic in topics:
        broker.create_topic(topic, config={"retention.ms": "-1"})


def _values(broker: Cluster, topic: str) -> list[bytes]:
    return [row["value"] for row in _rows(broker, topic)]


def _rows(broker: Cluster, topic: str) -> list[dict[str, Any]]:
    """Return the committed records: records of aborted transactions are written again."""
    table = read_table(
        topic,
        bootstrap=broker.bootstrap,
        columns=["key", "value", "headers"],
        isolation="read_committed",
    )
    values: list[dict[str, Any]] = table.to_pylist()
    return values


# --- brokers ---

WORDS = 5
ROUNDS = 40


def _counting(store: str = "all") -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("words", key=_TEXT, value=_TEXT)
    counted = words.group_by(lambda value: value, key=_TEXT, value=_TEXT).count(store)
    counted.to_stream().map_values(str).to("counted", key=_TEXT, value=_TEXT)
    return builder.build()


def _produce(bootstrap: str, rounds: int) -> None:
    records = [
        TopicRecord(None, b"word-%d" % n, _START) for _ in range(rounds) for n in range(WORDS)
    ]
    scenarios.produce(bootstrap, {"words": records})


def test_an_application_survives_broker_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """After a kill and a stop at random moments, all parts of the application continue."""
    chance = dice()
    states: list[State] = []
    with BrokerProcess(tmp_path / "broker") as broker:
        with Brokers(broker.bootstrap) as brokers:
            for topic in ("words", "counted"):
                scenarios.create(brokers, topic)
        app = _app(
            _counting(),
            spark,
            broker.bootstrap,
            "outliving",
            tmp_path,
            processing_guarantee="exactly_once_v2",
            max_records=20,
        )
        app.set_state_listener(lambda new, old: states.append(new))
        with app, reading(broker.bootstrap, "counted", 1) as reader:
            for number, end in enumerate((broker.kill, broker.stop)):
                _produce(broker.bootstrap, ROUNDS)
                before = number * ROUNDS * WORDS
                count = before + chance.randint(1, ROUNDS * WORDS - 1)
                _await_records(app, reader, count)
                reader.read(chance.random())
                end()
                broker.start()
            _produce(broker.bootstrap, ROUNDS)
            total = 3 * ROUNDS * WORDS
            _await_records(app, reader, total)
            counts = app.store("all", timeout_s=PATIENCE_S)
            _await(app, lambda: counts.get("word-1") == 3 * ROUNDS)
            with Brokers(broker.bootstrap) as brokers:
                _await(
                    app,
                    lambda: committed_offsets(brokers, "outliving")["words", 0].offset == total,
                )
        assert State.ERROR not in states
        seen = committed(broker.bootstrap, "counted", 1)
    each = range(1, 3 * ROUNDS + 1)
    assert seen == Counter(
        {(b"word-%d" % word, b"%d" % count): 1 for word in range(WORDS) for count in each}
    )


# --- records that cannot be read ---


def _doubling() -> Topology:
    builder = StreamsBuilder()
    numbers = builder.stream("numbers", key=_TEXT, value=Serdes.json())
    doubled = numbers.map_values(lambda value: 2 * value)
    doubled.to("doubled", key=_TEXT, value=Serdes.json())
    return builder.build()


def _numbers(*values: bytes) -> dict[str, list[TopicRecord]]:
    return {"numbers": [TopicRecord(b"k", value, _START) for value in values]}


def test_an_unreadable_record_ends_the_application_or_is_skipped(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The handler decides; the application continues at its last position with another handler."""
    _create(broker, "numbers", "doubled", "dead")

    def app(handlers: ExceptionHandlers | None) -> KafkaStreams:
        settings = {"processing_guarantee": "exactly_once_v2", "exception_handlers": handlers}
        return _app(_doubling(), spark, broker.bootstrap, "poisoned", tmp_path, **settings)

    scenarios.produce(broker.bootstrap, _numbers(b"1", b"{broken", b"2"))
    failing = app(None)
    with failing, pytest.raises(StreamsError) as caught:
        failing.await_termination(PATIENCE_S)
    assert failing.state is State.ERROR
    error, advice = str(caught.value).splitlines()
    assert error.startswith(
        "DeserializationError: the value of the record of numbers-0 at offset 1 cannot be read by "
        "Serdes.json: "
    )
    assert "Set the serdes of the source to those that the topic was written with." in advice
    goes_on = LogAndContinueExceptionHandler()
    with app(ExceptionHandlers(goes_on, dead_letter_queue_topic_name="dead")) as second:
        _await(second, lambda: _values(broker, "doubled") == [b"2", b"4"])
    ((key, value, headers),) = (row.values() for row in _rows(broker, "dead"))
    assert (key, value) == (b"k", b"{broken")
    errors = {header["key"]: header["value"] for header in headers}
    assert errors["__streams.errors.topic"] == b"numbers"
    assert errors["__streams.errors.offset"] == b"1"
    scenarios.produce(broker.bootstrap, _numbers(b"3", b"[", b"4"))
    with app(ExceptionHandlers(goes_on)) as third:
        _await(third, lambda: _values(broker, "doubled") == [b"2", b"4", b"6", b"8"])
    assert _values(broker, "dead") == [b"{broken"]


# --- schemas ---


def _order(*fields: dict[str, Any]) -> dict[str, Any]:
    own = [{"name": "item", "type": "string"}, {"name": "amount", "type": "int"}, *fields]
    return {"type": "record", "name": "Order", "fields": own}


_ORDER = _order()
_ORDER_WITH_CURRENCY = _order({"name": "currency", "type": "string", "default": "EUR"})
_ORDER_WITH_SHOP = _order({"name": "shop", "type": ["null", "string"], "default": None})


class _Before:
    """The classes of the first release."""

    @dataclass(frozen=True)
    class Visit:
        """The number of visits and the last page."""

        page: str
        count: int = 1


class _After:
    """The classes of a later release."""

    @dataclass(frozen=True)
    class Visit:
        """The number of visits, and page and device of the last one."""

        page: str
        count: int = 1
        device: str = "unknown"


def _sums(order: Serde[Any], visit: Any) -> Topology:
    """Add up records by key: Avro with a registry, and JSON of a class, also in the stores."""

    def add_order(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        return {**old, **new, "amount": old["amount"] + new["amount"]}

    def add_visit(old: Any, new: Any) -> Any:
        return dataclasses.replace(new, count=old.count + new.count)

    builder = StreamsBuilder()
    orders = builder.stream("orders", key=_TEXT, value=order)
    materialized = Materialized.as_("order-sums").with_key_serde(_TEXT).with_value_serde(order)
    sums = orders.group_by_key().reduce(add_order, materialized)
    sums.to_stream().to("sums", key=_TEXT, value=Serdes.json())
    json = Serdes.json(visit)
    visits = builder.stream("visits", key=_TEXT, value=json)
    materialized = Materialized.as_("visit-sums").with_key_serde(_TEXT).with_value_serde(json)
    visits.group_by_key().reduce(add_visit, materialized).to_stream().to(
        "sums", key=_TEXT, value=json
    )
    return builder.build()


def test_schemas_change_during_and_between_runs(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """First writers are newer than readers, then the reverse; stored values are read, too."""
    _create(broker, "orders", "visits", "sums")
    with FakeSchemaRegistry() as registry:

        def produce(schema: dict[str, Any], order: dict[str, Any], visit: bytes) -> None:
            serde = Serdes.avro(schema, registry=registry).of("orders", is_key=False)
            value = serde.to_bytes(order)
            records = {
                "orders": [TopicRecord(b"k", value, _START)],
                "visits": [TopicRecord(b"k", visit, _START)],
            }
            scenarios.produce(broker.bootstrap, records)

        def app(schema: dict[str, Any], visit: Any) -> KafkaStreams:
            order = Serdes.avro(schema, registry=SchemaRegistry(registry.url))
            topology = _sums(order, visit)
            return _app(topology, spark, broker.bootstrap, "changing", tmp_path)

        def await_sums(app: KafkaStreams, order: bytes, visit: bytes) -> None:
            _await(app, lambda: {order, visit} <= set(_values(broker, "sums")))

        with app(_ORDER, _Before.Visit) as first:
            produce(_ORDER, {"item": "a", "amount": 1}, b'{"page":"/"}')
            await_sums(first, b'{"item":"a","amount":1}', b'{"page":"/","count":1}')
            order = {"item": "b", "amount": 2, "shop": "here"}
            produce(_ORDER_WITH_SHOP, order, b'{"page":"/b","device":"phone"}')
            await_sums(first, b'{"item":"b","amount":3}', b'{"page":"/b","count":2}')
        produce(_ORDER, {"item": "c", "amount": 4}, b'{"page":"/c"}')
        with app(_ORDER_WITH_CURRENCY, _After.Visit) as again:
            await_sums(
                again,
                b'{"item":"c","amount":7,"currency":"EUR"}',
                b'{"page":"/c","count":3,"device":"unknown"}',
            )
            assert registry.subjects["orders-value"] == [1, 2]


# --- checkpoints ---


def test_a_checkpoint_of_another_topology_is_rejected_with_the_fix(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The application ends in ERROR; its error shows the difference and both fixes."""
    _create(broker, "words", "counted")
    with _app(_counting(), spark, broker.bootstrap, "refused", tmp_path) as app:
        app.await_running(PATIENCE_S)
    changed = _app(_counting("others"), spark, broker.bootstrap, "refused", tmp_path)
    with changed, pytest.raises(ConfigError) as caught:
        changed.await_termination(PATIENCE_S)
    assert changed.state is State.ERROR
    lines = str(caught.value).splitlines()
    assert any(line.startswith("  -") and "to all-repartition" in line for line in lines)
    assert any(line.startswith("  +") and "to others-repartition" in line for line in lines)
    assert "with `ottla streams reset` or another application_id" in lines[-1]
    assert "run the previous topology" in lines[-1]
