"""The option tables: Kafka's defaults and limits, the defaults of topic options, and errors."""

import pytest

from ottla.base.errors import ConfigError
from ottla.base.options import Scope
from ottla.cluster.options import option_tables
from ottla.cluster.options.option_tables import BROKER_OPTIONS, TOPIC_OPTIONS

DAY_MS = 24 * 3600 * 1000


def parse(**settings: str) -> option_tables.BrokerSettings:
    """Parse broker settings written as keywords, with dots as underscores."""
    return option_tables.parse_broker_settings(
        {name.replace("_", "."): text for name, text in settings.items()}
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", ["delete"]),
        ("compression.type", "producer"),
        ("delete.retention.ms", DAY_MS),
        ("flush.messages", 2**63 - 1),
        ("flush.ms", 2**63 - 1),
        ("index.interval.bytes", 4096),
        ("max.message.bytes", 1048588),
        ("message.timestamp.after.max.ms", 3600000),
        ("message.timestamp.type", "CreateTime"),
        ("min.insync.replicas", 1),
        ("retention.bytes", -1),
        ("retention.ms", 7 * DAY_MS),
        ("segment.bytes", 1073741824),
        ("segment.index.bytes", 10485760),
        ("segment.ms", 7 * DAY_MS),
        ("unclean.leader.election.enable", False),
    ],
)
def test_topic_without_settings_has_the_defaults_of_kafka(name: str, value: object) -> None:
    """An option that neither topic nor broker sets has the default of Apache Kafka 4.3."""
    assert option_tables.topic_snapshot(parse().snapshot, {})[name] == value


def test_every_broker_default_equals_the_default_of_its_topic_option() -> None:
    """A broker without settings leaves every topic option at the default of its own row."""
    broker = parse().snapshot
    for name, row in TOPIC_OPTIONS.rows.items():
        assert option_tables.topic_default(broker, name) == row.default, name


def test_every_fallback_of_a_topic_option_is_a_broker_option() -> None:
    """The broker options that topic rows name exist and belong to the broker."""
    for name in TOPIC_OPTIONS.rows:
        for synonym in option_tables.topic_synonyms(name):
            assert BROKER_OPTIONS.row(synonym.name).scope is Scope.BROKER


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.minutes": "2", "log.retention.hours": "1"}, 120_000),
        ({"log.retention.ms": "3", "log.retention.minutes": "2"}, 3),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_finest_unit_of_retention_has_precedence(settings: dict[str, str], expected: int) -> None:
    """Milliseconds have precedence over minutes, minutes over hours; -1 stays unlimited."""
    broker = option_tables.parse_broker_settings(settings).snapshot
    assert option_tables.topic_snapshot(broker, {})["retention.ms"] == expected


def test_topic_setting_has_precedence_over_the_broker() -> None:
    """The topic's value applies if both are set."""
    broker = parse(message_max_bytes="2000").snapshot
    assert option_tables.topic_snapshot(broker, {})["max.message.bytes"] == 2000
    assert (
        option_tables.topic_snapshot(broker, {"max.message.bytes": "1"})["max.message.bytes"] == 1
    )


def test_the_segment_size_for_tests_may_be_below_the_minimum() -> None:
    """The option internal.segment.bytes exists beside segment.bytes, which keeps its own value."""
    snapshot = option_tables.topic_snapshot(parse().snapshot, {"internal.segment.bytes": "500"})
    assert snapshot["internal.segment.bytes"] == 500
    assert snapshot["segment.bytes"] == 1024**3


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("segment.bytes", "1000", "Value must be at least 1048576"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("retention.ms", "soon", "Not a number of type LONG"),
        ("max.message.bytes", "2147483648", "Not a number of type INT"),
        ("cleanup.policy", "shred", "String must be one of: compact, delete"),
        ("compression.gzip.level", "0", "it must be between 1 and 9, or -1"),
        ("min.cleanable.dirty.ratio", "0_0.5", "Not a number of type DOUBLE"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("leader.replication.throttled.replicas", "1-2", "partition:broker pairs"),
    ],
)
def test_invalid_topic_value_is_rejected_with_name_and_reason(
    name: str, text: str, reason: str
) -> None:
    """The error has Kafka's form: value, configuration, reason."""
    with pytest.raises(ConfigError) as caught:
        option_tables.topic_snapshot(parse().snapshot, {name: text})
    assert str(caught.value).startswith(f"Invalid value {text} for configuration {name}: ")
    assert reason in str(caught.value)


def test_contradictory_compaction_lags_are_rejected() -> None:
    """The minimum compaction lag may not exceed the maximum."""
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    with pytest.raises(ConfigError, match=r"max\.compaction\.lag\.ms, which is 5"):
        option_tables.check_topic_settings(parse().snapshot, lags)


def test_unknown_topic_option_is_rejected_by_name() -> None:
    """An unknown name is an error for a topic."""
    with pytest.raises(ConfigError, match=r"Unknown configuration no\.such"):
        option_tables.topic_snapshot(parse().snapshot, {"no.such": "1"})


def test_unknown_broker_option_is_a_warning_with_a_suggestion() -> None:
    """A broker starts with unknown options and logs a warning, as Kafka does."""
    settings = option_tables.parse_broker_settings({"log.retention.hour": "1", "zzz": "1"})
    assert settings.warnings == [
        "Unknown configuration log.retention.hour is ignored; did you mean log.retention.hours?",
        "Unknown configuration zzz is ignored",
    ]


def test_an_option_without_effect_is_a_warning() -> None:
    """An option that Ottla accepts and ignores always causes a warning."""
    assert parse(num_io_threads="4").warnings == [
        "Configuration num.io.threads has no effect: Accepted and shown, but Ottla does not act "
        "on it: one event loop does this work."
    ]


@pytest.mark.parametrize("name", ["authorizer.class.name"])
def test_unsupported_security_settings_stop_the_broker(name: str) -> None:
    """A security option that Ottla does not support is an error, not a warning."""
    with pytest.raises(ConfigError, match=name):
        option_tables.parse_broker_settings({name: "x"})


def test_broker_id_is_the_older_name_of_node_id() -> None:
    """Either name sets the id, both are described, and a contradiction is rejected."""
    assert parse(broker_id="7").snapshot["node.id"] == 7
    assert parse(node_id="8").snapshot["broker.id"] == 8
    with pytest.raises(ConfigError, match=r"node\.id is 1 but broker\.id is 2"):
        parse(node_id="1", broker_id="2")


def test_log_dir_applies_if_log_dirs_is_not_set() -> None:
    """The option log.dirs has precedence, and log.dir is its default."""
    assert parse(log_dir="/a").snapshot.strings("log.dirs") == ["/a"]
    assert parse(log_dir="/a", log_dirs="/b, /c").snapshot.strings("log.dirs") == ["/b", "/c"]


def test_listeners_are_parsed() -> None:
    """Names are mapped to protocols; IPv6 hosts lose their brackets; no host means all interfaces."""
    settings = {
        "listeners": "PLAINTEXT://:9092,IN://[::1]:0",
        "listener.security.protocol.map": "IN:PLAINTEXT",
    }
    broker = option_tables.parse_broker_settings(settings).snapshot
    assert option_tables.parse_listeners(broker) == [
        option_tables.Listener("PLAINTEXT", "PLAINTEXT", "", 9092),
        option_tables.Listener("IN", "PLAINTEXT", "::1", 0),
    ]


def test_controller_listeners_have_no_security_by_default() -> None:
    """Kafka maps the names of a KRaft node's controller listeners to PLAINTEXT itself (KIP-631)."""
    settings = {
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "controller.listener.names": "CONTROLLER",
    }
    broker = option_tables.parse_broker_settings(settings).snapshot
    assert option_tables.parse_listeners(broker)[1].protocol == "PLAINTEXT"
    for other in (
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
        {"listeners": "SASL_PLAINTEXT://:9092,CONTROLLER://:9093"},
    ):
        with pytest.raises(ConfigError, match="names no protocol for CONTROLLER"):
            option_tables.parse_broker_settings({**settings, **other})


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("listeners", "localhost:9092", "it must look like"),
        ("listeners", "PLAINTEXT://host:70000", "it must look like"),
        ("listeners", "INSIDE://host:1", "names no protocol for INSIDE"),
        ("listeners", "", "it must not be empty"),
        ("advertised.listeners", "SSL://host:1", "listeners has no listener with this name"),
        ("listener.security.protocol.map", "A=B", "is not name:protocol"),
        ("max.connections.per.ip", "0", "every connection would be refused"),
        ("max.connections.per.ip.overrides", "host", "'host' is not a pair of host and number"),
        ("max.connections.per.ip.overrides", "host#:5", "'host#:5' is not a pair of host and"),
        ("max.connections.per.ip.overrides", "host:-1", "'host:-1' is not a pair of host and"),
        ("queued.max.request.bytes", "5", "it must not be below socket.request.max.bytes"),
    ],
)
def test_invalid_broker_settings_are_rejected(name: str, text: str, reason: str) -> None:
    """The error names the option and the valid values."""
    with pytest.raises(ConfigError, match=name) as caught:
        option_tables.parse_broker_settings({name: text})
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("log.retention.ms", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"]),
        ("log.retention.minutes", ["log.retention.minutes", "log.retention.hours"]),
        ("log.roll.ms", ["log.roll.ms", "log.roll.hours"]),
        ("num.partitions", ["num.partitions"]),
    ],
)
def test_broker_options_have_their_synonyms(name: str, first: list[str]) -> None:
    """The synonyms of a broker option are itself and the coarser names after it."""
    assert [synonym.name for synonym in option_tables.broker_synonyms(name)] == first


@pytest.mark.parametrize(
    "settings",
    [
        {"group.consumer.session.timeout.ms": "44999"},
        {"group.consumer.heartbeat.interval.ms": "15001"},
        {"group.consumer.assignment.interval.ms": "15001"},
        {
            "group.consumer.session.timeout.ms": "60000",
            "group.consumer.max.heartbeat.interval.ms": "70000",
            "group.consumer.heartbeat.interval.ms": "60000",
        },
    ],
)
def test_group_defaults_have_to_respect_the_limits(settings: dict[str, str]) -> None:
    """A broker does not start if its own values are outside of the limits for groups."""
    with pytest.raises(ConfigError, match=r"group\.consumer\."):
        option_tables.parse_broker_settings(settings)


def test_broker_id_below_minus_one_is_rejected() -> None:
    """The limit is the same as in Kafka 3.9; -1 means that only node.id is set."""
    with pytest.raises(ConfigError, match=r"broker\.id: Value must be at least -1"):
        option_tables.parse_broker_settings({"broker.id": "-5"})
