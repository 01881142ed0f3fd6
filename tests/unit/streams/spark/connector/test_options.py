"""The connector's options: Kafka's names, with types; unsupported ones are rejected by name."""

from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client.admin.offsets import EARLIEST, LATEST
from ottla.client.fetcher import FetchSettings
from ottla.client.security.options import Credentials
from ottla.client.sender import SendSettings
from ottla.streams.spark.connector.options import (
    OPTIONS,
    WITHOUT_EFFECT,
    SparkOptions,
    Use,
    cluster_options,
)

STREAMS = {"maxTriggerDelay", "maxBytesPerTrigger", "group.id"}
READ = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}


def _options(use: Use = Use.BATCH_READ, **options: str) -> SparkOptions:
    required = {} if use is Use.WRITE else READ
    return SparkOptions(required | options, use)


def test_names_are_case_insensitive() -> None:
    """Spark converts the names of options to lower case, but not their values."""
    options = _options(subscribe="Flights, b", startingoffsets='{"Flights": {"0": 5}}')
    assert options.get("subscribe") == ("Flights", "b")
    assert "startingOffsets" in options
    assert "endingOffsets" not in options


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("startingOffsets", "Earliest", EARLIEST),
        ("startingOffsets", '{"t": {"0": 23, "1": -2}}', {("t", 0): 23, ("t", 1): -2}),
        ("endingOffsets", "latest", LATEST),
        ("startingTimestamp", "1700000000000", 1_700_000_000_000),
        ("startingOffsetsByTimestamp", '{"t": {"3": 9}}', {("t", 3): 9}),
        ("minPartitions", "8", 8),
        ("includeHeaders", "TRUE", True),
        ("failOnDataLoss", "false", False),
        ("maxTriggerDelay", "5m", 300_000),
        ("maxTriggerDelay", "10 seconds", 10_000),
        ("maxBytesPerTrigger", "1000", 1000),
        ("group.id", "g", "g"),
        ("kafka.isolation.level", "read_committed", "read_committed"),
    ],
)
def test_values_are_parsed(name: str, text: str, value: Any) -> None:
    """Each option has a type."""
    use = Use.STREAM_READ if name in STREAMS else Use.BATCH_READ
    assert _options(use, **{name: text}).get(name) == value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingoffset": "earliest"}, "There is no option startingoffset. Is startingOffsets"),
        ({"colour": "1"}, "There is no option colour. For reading a batch there are: "),
        ({"minoffsetspertrigger": "5"}, "minOffsetsPerTrigger is for reading a stream, not for"),
        ({"kafka.group.id": "g"}, "kafka.group.id is for reading a stream, not for"),
        ({"topic": "t"}, "Option topic is for writing, not for reading a batch"),
        ({"maxOffsetsPerTrigger": "5"}, "is for reading a stream, not for reading a batch"),
        ({"minPartitions": "0"}, "minPartitions cannot be '0': it must be above 0"),
        ({"minPartitions": "two"}, "write a whole number"),
        ({"includeHeaders": "yes"}, "write true or false"),
        ({"startingOffsets": "begin"}, "startingOffsets cannot be 'begin': it is not JSON"),
        ({"startingOffsets": "[]"}, "write a JSON object by topic"),
        ({"startingOffsets": '{"t": 5}'}, "write a number for each partition"),
        ({"startingOffsets": '{"t": {"x": 5}}'}, "write a number for each partition"),
        ({"startingOffsets": "latest"}, "cannot be latest for a batch query"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "cannot be latest for a batch query"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "cannot be an end"),
        ({"startingTimestamp": "-5"}, "not below 0"),
        ({"kafka.isolation.level": "dirty"}, "choose one of read_uncommitted, read_committed"),
        ({"subscribe": " , "}, "name at least one topic"),
        ({"assign": '{"t": [0]}'}, "subscribe and assign are set"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, str], message: str) -> None:
    """The error has the documented name of the option, and the fix."""
    with pytest.raises(ConfigError) as caught:
        _options(**options)
    assert message in str(caught.value)


def test_one_of_the_three_topic_options_is_required() -> None:
    """The options are subscribe, subscribePattern and assign."""
    with pytest.raises(ConfigError, match="none of them is set"):
        SparkOptions({"kafka.bootstrap.servers": "a:1"}, Use.STREAM_READ)
    pattern = SparkOptions({"bootstrap": "a:1", "subscribepattern": "f.*"}, Use.STREAM_READ)
    assert pattern.get("subscribePattern").fullmatch("flights")
    assigned = SparkOptions({"bootstrap": "a:1", "assign": '{"b": [1, 0]}'}, Use.STREAM_READ)
    assert assigned.get("assign") == (("b", 0), ("b", 1))
    for option, text in (("subscribepattern", "("), ("assign", '{"b": 1}')):
        with pytest.raises(ConfigError, match=f"(?i)option {option} cannot be"):
            SparkOptions({"bootstrap": "a:1", option: text}, Use.STREAM_READ)


def test_brokers_have_a_long_and_a_short_option() -> None:
    """Without either, the error names the long one."""
    assert _options().bootstrap == "a:1"
    assert SparkOptions({"bootstrap": "b:2"}, Use.WRITE).bootstrap == "b:2"
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers is missing"):
        _ = SparkOptions({}, Use.WRITE).bootstrap
    with pytest.raises(ConfigError, match="not a port"):
        _ = SparkOptions({"bootstrap": "b:x"}, Use.WRITE).bootstrap


def test_fetch_settings_follow_the_options() -> None:
    """Kafka's consumer options configure the fetcher; the defaults are Spark's."""
    assert _options().fetch_settings == FetchSettings(timeout_s=120.0)
    chosen = _options(
        **{
            "kafka.isolation.level": "read_committed",
            "kafka.max.partition.fetch.bytes": "1000",
            "kafka.fetch.max.wait.ms": "7",
            "kafkaconsumer.polltimeoutms": "1500",
            "failondataloss": "false",
        }
    )
    assert chosen.fetch_settings == FetchSettings(
        fetch_bytes=1000, max_wait_ms=7, timeout_s=1.5, read_committed=True, skips_lost=True
    )


def test_send_settings_follow_the_options() -> None:
    """Kafka's producer options configure the sender; durability cannot be reduced."""
    assert _options(Use.WRITE).send_settings == SendSettings()
    chosen = {
        "kafka.compression.type": "zstd",
        "kafka.batch.size": "5000",
        "kafka.delivery.timeout.ms": "2000",
        "kafka.acks": "all",
        "kafka.enable.idempotence": "true",
    }
    expected = SendSettings(batch_bytes=5000, compression=4, timeout_s=2.0)
    assert _options(Use.WRITE, **chosen).send_settings == expected
    for name, text in (("kafka.acks", "1"), ("kafka.enable.idempotence", "false")):
        with pytest.raises(ConfigError, match=name):
            _options(Use.WRITE, **{name: text})


def test_every_option_is_documented() -> None:
    """The table of options is the source of the documentation."""
    assert all(row.doc.endswith(".") for row in OPTIONS)
    assert len({row.name.lower() for row in OPTIONS}) == len(OPTIONS)


def test_options_of_tls_and_sasl_reach_the_connections() -> None:
    """Under the names of Spark's Kafka connector; a wrong one is reported without any value."""
    jaas = 'x.PlainLoginModule required username="ann" password="hush";'
    named = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    options = _options(**named, **{"kafka.sasl.jaas.config": jaas})
    brokers = options.brokers()
    assert brokers.security is not None
    assert brokers.security.credentials == Credentials("PLAIN", "ann", "hush")
    assert cluster_options(options.access) == {
        "kafka.bootstrap.servers": "a:1",
        **named,
        "kafka.sasl.jaas.config": jaas,
    }
    with pytest.raises(ConfigError) as refused:
        _options(**named, **{"kafka.sasl.jaas.config": "hush"}).brokers()
    assert "hush" not in str(refused.value)
    with pytest.raises(ConfigError, match=r"kafka\.sasl\.jaas\.confg.*kafka\.sasl\.jaas\.config"):
        _options(**{"kafka.sasl.jaas.confg": jaas})


def test_options_of_spark_s_connector_without_a_meaning_are_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A job moves by the name of its format; each process logs one warning for each option."""
    everyday = {
        "kafka.request.timeout.ms": "30000",
        "kafka.session.timeout.ms": "10000",
        "kafka.max.poll.records": "500",
        "kafka.fetch.min.bytes": "1",
        "kafka.metadata.max.age.ms": "60000",
        "kafka.heartbeat.interval.ms": "3000",
        "groupIdPrefix": "job",
        "fetchOffset.numRetries": "3",
        "fetchoffset.retryintervalms": "10",
    }
    for use in Use:
        assert "kafka.group.id" not in _options(use, **everyday)
    assert caplog.text.count("has no effect: ") == len(everyday)
    assert "Option fetchOffset.retryIntervalMs has no effect: this format has" in caplog.text


def test_no_option_is_supported_and_without_effect() -> None:
    """Both tables are about different options."""
    assert not {name.lower() for name in WITHOUT_EFFECT} & {row.name.lower() for row in OPTIONS}


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        (r"\p{Alpha}+", "at character 1"),
        (r"a\Q.b\E", "at character 2"),
        ("[a-z&&[^b]]", "at character 1"),
        ("(?i)birds", "at character 1"),
    ],
)
def test_a_pattern_that_python_reads_otherwise_is_refused(pattern: str, place: str) -> None:
    """The syntax is Java's, as in Spark's Kafka connector; the error has the place."""
    options = {"bootstrap": "a:1", "subscribepattern": pattern}
    with pytest.raises(ConfigError) as caught:
        SparkOptions(options, Use.STREAM_READ)
    assert f"another meaning in Python than in Java {place}: write a simpler" in str(caught.value)


def test_patterns_of_both_languages_are_read() -> None:
    """A topology's own pattern is Python's, and is marked by a comment."""
    for pattern in (r"birds-\d+\.v[12]", "(?:a|b){2}.*", r"(?#python)(?:\w+(?<!x))"):
        options = {"bootstrap": "a:1", "subscribepattern": pattern}
        assert SparkOptions(options, Use.STREAM_READ).get("subscribePattern").pattern
