"""Options with Kafka's names, for applications and test drivers."""

import copy
import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.streams import (
    Processor,
    ProcessorContext,
    Record,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TestRecord,
    TopologyTestDriver,
    WallclockTimestampExtractor,
)
from ottla.streams.application.election import ElectionSettings
from ottla.streams.settings.application import (
    AppSettings,
    check_local,
    known_options,
    read_settings,
)
from ottla.streams.settings.config import keywords
from ottla.streams.settings.handlers import (
    ExceptionHandlers,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
)
from ottla.streams.spark.query.compile import QuerySettings

CONFIG: dict[str, Any] = {
    StreamsConfig.APPLICATION_ID_CONFIG: "app",
    StreamsConfig.BOOTSTRAP_SERVERS_CONFIG: "127.0.0.1:1",
    StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG: Serdes.string,
    StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG: Serdes.long(),
    StreamsConfig.PROCESSING_GUARANTEE_CONFIG: StreamsConfig.EXACTLY_ONCE_V2,
    StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG: LogAndContinueExceptionHandler,
    StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG: (
        LogAndContinueProcessingExceptionHandler()
    ),
    StreamsConfig.ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG: "dead",
}


def test_kafkas_names_become_keyword_arguments() -> None:
    """Classes are instantiated, and handlers are combined into one option."""
    arguments = keywords(CONFIG)
    assert arguments.pop("application_id") == "app"
    assert arguments.pop("bootstrap_servers") == "127.0.0.1:1"
    settings = read_settings(arguments)
    assert settings.default_key_serde is Serdes.string()
    assert settings.is_exactly_once
    assert settings.exception_handlers == ExceptionHandlers(
        LogAndContinueExceptionHandler(),
        LogAndContinueProcessingExceptionHandler(),
        dead_letter_queue_topic_name="dead",
    )


def test_every_constant_is_an_option() -> None:
    """An unknown constant is an error that suggests the nearest one."""
    names = [value for name, value in vars(StreamsConfig).items() if name.endswith("_CONFIG")]
    settings = keywords({**dict.fromkeys(names, 1), **CONFIG, "state.dir": "/state"})
    del settings["application_id"], settings["bootstrap_servers"]
    fields = {field.name for field in dataclasses.fields(AppSettings)}
    assert set(settings) <= fields
    with pytest.raises(AttributeError, match="did you mean NUM_STREAM_THREADS_CONFIG"):
        StreamsConfig.NUM_STREAM_THREAD_CONFIG  # type: ignore[attr-defined]  # noqa: B018


def test_options_without_effect_are_accepted() -> None:
    """Another auto.offset.reset than earliest is rejected with the alternative."""
    config: dict[str, Any] = {
        StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG: StreamsConfig.OPTIMIZE,
        "auto.offset.reset": "earliest",
    }
    assert keywords(config) == {}
    assert str(StreamsBuilder().build(config).describe()).startswith("Topologies:")
    with pytest.raises(ConfigError, match=r"builder\.stream\(topic, offset_reset='latest'\)"):
        keywords({"auto.offset.reset": "latest"})


def test_the_cache_size_is_an_option() -> None:
    """A driver commits after each record, as Kafka's does, so that every update is emitted."""
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count().to_stream().to("out")
    config = {StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG: 1_000_000}
    with TopologyTestDriver(builder.build(), config) as driver:
        topic = driver.create_input_topic("in")
        with pytest.raises(ValueError, match="no source reads topic on; those that are read: in"):
            driver.create_input_topic("on").pipe_input("a", 1)
        topic.pipe_key_value_list([("a", 1), ("a", 1)])
        values = driver.create_output_topic("out", value=Serdes.long()).read_values_to_list()
        assert values == [1, 2]


def test_handlers_are_set_in_one_way_only() -> None:
    """Setting them both ways is an error, because one would be ignored."""
    with pytest.raises(ConfigError, match="not both"):
        keywords({**CONFIG, "exception_handlers": ExceptionHandlers()})


def test_a_driver_accepts_the_options_of_its_application() -> None:
    """The form is `new TopologyTestDriver(topology, props, initialWallClockTime)`."""
    builder = StreamsBuilder()
    builder.stream("in").map_values(lambda v: 12 // v).to("out")
    start = datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    with TopologyTestDriver(builder.build(), CONFIG, start) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_key_value_list([("a", 0), ("b", 4)])
        record = driver.create_output_topic("out").read_record()
        assert record == TestRecord("b", 3, timestamp=60_000)
        assert driver.create_output_topic("dead").read_key_value() == ("a", 0)
        assert driver.get_all_state_stores() == {}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bootstrap.server", "bootstrap_servers"),
        ("commit.intervall.ms", "commit_interval_ms"),
        ("state.dirs", "state_dir"),
        ("num.standby.replica", "num.standby.replicas"),
        ("default.value.serdes", "default_value_serde"),
    ],
)
def test_a_misspelt_option_is_rejected(name: str, meant: str) -> None:
    """The error suggests an option, and names the place for custom options."""
    topology = StreamsBuilder().build()
    with pytest.raises(ConfigError, match=f"no option '{name}'; did you mean '{meant}'"):
        TopologyTestDriver(topology, {name: 1})
    TopologyTestDriver(topology, {"app_configs": {name: 1}}).close()


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("num.standby.replicas", "start a second instance, which takes over"),
        ("consumer.max.poll.records", "source_options and sink_options"),
        ("rocksdb.config.setter", "in spark_settings"),
        ("cache.max.bytes.buffering", r"set statestore\.cache\.max\.bytes"),
    ],
)
def test_an_option_without_effect_on_spark_is_rejected_with_the_alternative(
    name: str, instead: str
) -> None:
    """This applies to the mapping and to keyword arguments."""
    sentence = f"option '{name}' of Kafka Streams has no effect on Spark: .*{instead}"
    with pytest.raises(ConfigError, match=sentence):
        TopologyTestDriver(StreamsBuilder().build(), {name: 1})
    with pytest.raises(ConfigError, match=sentence.replace(name, name.replace(".", "_"))):
        read_settings({name.replace(".", "_"): 1})


_REPLICAS: dict[str, Any] = {
    "engine": "local",
    StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG: 1,
    StreamsConfig.ACCEPTABLE_RECOVERY_LAG_CONFIG: 50,
    StreamsConfig.MAX_WARMUP_REPLICAS_CONFIG: 3,
    StreamsConfig.PROBING_REBALANCE_INTERVAL_MS_CONFIG: 60_000,
    StreamsConfig.STATE_CLEANUP_DELAY_MS_CONFIG: 1_000,
    StreamsConfig.MAX_TASK_IDLE_MS_CONFIG: 5,
    StreamsConfig.RACK_AWARE_ASSIGNMENT_TAGS_CONFIG: "zone, cluster_1",
    StreamsConfig.client_tag("zone"): "a",
    StreamsConfig.client_tag("cluster_1"): "b",
    StreamsConfig.DEFAULT_DSL_STORE_CONFIG: StreamsConfig.IN_MEMORY,
    StreamsConfig.consumer_prefix("group.instance.id"): "first",
    "main.consumer.session.timeout.ms": 6_000,
    "max.poll.interval.ms": 9_000,
}


def test_options_of_replicas_and_members_have_kafkas_names() -> None:
    """Those of the member may have the prefix of the consumer."""
    settings = read_settings(keywords(_REPLICAS, known_options()))
    assert settings.num_standby_replicas == 1
    assert settings.acceptable_recovery_lag == 50
    assert settings.max_warmup_replicas == 3
    assert settings.probing_rebalance_interval_ms == 60_000
    assert settings.state_cleanup_delay_ms == 1_000
    assert settings.max_task_idle_ms == 5
    assert settings.rack_aware_assignment_tags == ["zone", "cluster_1"]
    assert settings.client_tags == {"zone": "a", "cluster_1": "b"}
    assert settings.default_dsl_store == "in_memory"
    assert settings.group_instance_id == "first"
    assert settings.session_timeout_ms == 6_000
    assert settings.max_poll_interval_ms == 9_000
    check_local(settings)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("rocksdb.config.setter", "state is in SQLite"),
        ("dsl.store.suppliers.class", r"set default\.dsl\.store"),
        ("consumer.max.poll.records", "defaults of librdkafka"),
        ("task.timeout.ms", "waits until the brokers respond"),
    ],
)
def test_an_option_without_effect_on_the_local_engine_is_rejected_with_the_alternative(
    name: str, instead: str
) -> None:
    """The error names the engine."""
    sentence = f"option '{name}' of Kafka Streams has no effect with engine='local': .*{instead}"
    with pytest.raises(ConfigError, match=sentence):
        keywords({"engine": "local", name: 1}, known_options())
    with pytest.raises(ConfigError, match=sentence.replace(name, name.replace(".", "_"))):
        read_settings({"engine": "local", name.replace(".", "_"): 1})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"state_dir": "hdfs://nodes/state"}, "'hdfs://nodes/state' with engine='local'"),
        ({"default_dsl_store": "lmdb"}, "'lmdb': choose rocksDB or in_memory"),
        ({"heartbeat_interval_ms": 10_000}, r"less than session_timeout_ms \(10000\)"),
        ({"rack_aware_assignment_tags": ["zone"]}, "'zone': client_tags of this instance"),
        ({"client_tags": {"zone": 1}}, "'zone': 1: set a text"),
        ({"group_instance_id": "a/b"}, "group_instance_id cannot be 'a/b'"),
    ],
)
def test_the_local_engine_rejects_values(options: dict[str, Any], sentence: str) -> None:
    """The error quotes the value."""
    with pytest.raises(ConfigError, match=sentence):
        check_local(read_settings({"engine": "local", **options}))


_JAAS = 'x.PlainLoginModule required username="ann" password="hush";'
_SECURED = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": _JAAS,
}


def test_options_of_tls_and_sasl_are_those_of_kafkas_clients() -> None:
    """In the mapping, as keyword arguments, which override it, or together."""
    words = {name.replace(".", "_"): value for name, value in _SECURED.items()}
    for options in (keywords(_SECURED), words, {"security": _SECURED}):
        assert read_settings(options).security == _SECURED
    overridden = read_settings({**keywords(_SECURED), "sasl_mechanism": "SCRAM-SHA-256"})
    assert overridden.security == _SECURED | {"sasl.mechanism": "SCRAM-SHA-256"}
    with pytest.raises(ConfigError, match=r"sasl\.mechanism=GSSAPI is not supported"):
        read_settings({"security_protocol": "SASL_SSL"})
    with pytest.raises(ConfigError, match=r"security cannot have 'acks'"):
        read_settings({"security": {"acks": "all"}})
    with pytest.raises(ConfigError, match=r"did you mean 'sasl\.jaas\.config'"):
        keywords({"sasl.jaas.confg": _JAAS}, known_options())


def test_a_test_needs_no_certificates() -> None:
    """The driver accepts the mapping of an application, whose files may not exist here."""
    config = {"security.protocol": "SSL", "ssl.truststore.location": "/nowhere/ca.pem"}
    TopologyTestDriver(StreamsBuilder().build(), config).close()
    with pytest.raises(ConfigError, match=r"ssl\.truststore cannot be read.*/nowhere/ca\.pem"):
        read_settings(keywords(config))


def test_secrets_are_in_no_text_and_not_passed_to_processors() -> None:
    """The settings of connections are for connections only."""
    settings = read_settings(keywords({**_SECURED, "qwertz": 1}, known_options()))
    assert settings.app_configs == {"qwertz": 1}
    query = QuerySettings("b:1", "folder", security=settings.security)
    election = ElectionSettings("b:1", "app", security=settings.security)
    assert "hush" not in f"{settings!r} {query!r} {query.access!r} {election!r}"


def test_processors_read_the_options_of_the_application() -> None:
    """Kafka's `appConfigs` contains custom and plain known options; a prefix can be removed."""
    seen: list[dict[str, Any]] = []

    class Reads(Processor[Any, Any, Any, Any]):
        def init(self, context: ProcessorContext) -> None:
            seen.append(context.app_configs())
            seen.append(context.app_configs_with_prefix("prices."))

        def process(self, record: Record[Any, Any]) -> None:
            """Do nothing."""

    builder = StreamsBuilder()
    builder.stream("in").process(Reads)
    own = {"prices.url": "http://here", "qwertz": [1]}
    TopologyTestDriver(builder.build(), {**CONFIG, **own, "max.records": 5}).close()
    assert seen == [
        {
            "application.id": "app",
            "bootstrap.servers": "127.0.0.1:1",
            "processing.guarantee": "exactly_once_v2",
            "errors.dead.letter.queue.topic.name": "dead",
            "max.records": 5,
            **own,
        },
        {"url": "http://here"},
    ]


def test_handlers_and_extractors_that_are_classes_are_configured() -> None:
    """Method `configure` receives the whole mapping, as in Kafka."""

    class Handler(LogAndContinueExceptionHandler):
        def configure(self, configs: Mapping[str, Any]) -> None:
            seen.append((self, configs["own"]))

    class Extractor(WallclockTimestampExtractor):
        def configure(self, configs: Mapping[str, Any]) -> None:
            seen.append((self, configs["own"]))

    seen: list[tuple[object, Any]] = []
    config = {
        "own": 7,
        "default.deserialization.exception.handler": Handler,
        "processing.exception.handler": LogAndContinueProcessingExceptionHandler(),
        "default.timestamp.extractor": Extractor,
    }
    settings = keywords(config, known_options())
    handler, extractor = (
        settings["exception_handlers"].deserialization,
        settings["default_timestamp_extractor"],
    )
    assert seen == [(handler, 7), (extractor, 7)]
    assert settings["app_configs"] == {"own": 7}


def test_a_custom_option_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A misspelt option without a similar known one can be found in the log."""
    caplog.set_level("INFO")
    TopologyTestDriver(StreamsBuilder().build(), {"qwertz": 1}).close()
    assert "'qwertz' is not an option of KafkaStreams" in caplog.text


def test_test_records_are_written_and_read_as_in_java() -> None:
    """Headers and times in ms or as datetime are supported; a value alone has no key."""
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    second = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    records: list[Record[Any, Any]] = [
        TestRecord("a", 1, [("h", b"x")], second),
        TestRecord("b", 2),
        TestRecord("alone"),
        Record("c", 3, 7),
    ]
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", None, None, second, "1 s")
        topic.pipe_input(records[0])
        topic.pipe_record_list(records[1:])
        topic.pipe_value_list(["x"], second)
        actual = driver.create_output_topic("out").read_records_to_list()
    assert actual == [
        TestRecord("a", 1, [("h", b"x")], 1_000),
        TestRecord("b", 2, (), 1_000),
        TestRecord("alone", timestamp=2_000),
        TestRecord("c", 3, (), 7),
        TestRecord("x", timestamp=1_000),
    ]
    assert actual[0].record_time == second
    assert TestRecord("b").record_time is None
    assert copy.copy(actual[0]) == actual[0]
