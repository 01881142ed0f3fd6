"""Options of stores, tables and applications reject the values that Kafka's reject."""

from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.streams import (
    KafkaStreams,
    Materialized,
    Repartitioned,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TopologyError,
    TopologyTestDriver,
)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Stores.window("w", 5, 10), "retention of '5' ms.*windows of '10' ms"),
        (lambda: Stores.timestamped_window("w", 5, 10), "retention of '5' ms"),
        (lambda: Stores.persistent_window_store("w", 5, 10), "retention of '5' ms"),
        (lambda: Stores.in_memory_window_store("w", 5, 10, True), "retention of '5' ms"),
        (lambda: Stores.persistent_timestamped_window_store("w", 5, 10), "retention of '5' ms"),
        (lambda: Stores.window("w", -5, 10), "'-5'"),
        (lambda: Stores.window("w", 5, -10), "'-10'"),
        (lambda: Stores.session("s", -5), "'-5'"),
        (lambda: Stores.persistent_session_store("s", -5), "'-5'"),
        (lambda: Stores.versioned("v", -5), "'-5'"),
        (lambda: Stores.persistent_versioned_key_value_store("v", 5, 0), "interval of '0' ms"),
        (lambda: Stores.persistent_versioned_key_value_store("v", 5, -1), "'-1'"),
        (lambda: Stores.versioned("v", 5).with_caching_enabled(), "'v'.*cannot be cached"),
        (lambda: Stores.key_value(None), "not None"),
        (lambda: Stores.persistent_key_value_store(None), "not None"),
        (lambda: Stores.window(None, 5, 5), "not None"),
        (lambda: Materialized.as_("m").with_retention(-1), "'-1'"),
        (lambda: Materialized(retention=-1), "'-1'"),
        (lambda: Materialized.as_(Stores.key_value("m")).with_store_type("x"), "supplied"),
        (lambda: Materialized.as_("m").with_store_type("x"), "'x': choose StoreType"),
        (lambda: StreamJoined().with_dsl_store_suppliers("x"), "'x': choose StoreType"),
        (lambda: Repartitioned(partitions="3"), "whole number, not '3'"),
        (lambda: Repartitioned.number_of_partitions(1.5), "whole number, not 1.5"),
        (lambda: Suppressed.BufferConfig.max_records("5"), "max_records_count.*not '5'"),
        (lambda: Suppressed.BufferConfig.max_bytes(1.5), "max_bytes_count.*not 1.5"),
        (lambda: Suppressed("5 min"), "wait_ms.*not '5 min'.*until_time_limit"),
        (lambda: Suppressed(None, idle_timeout_ms=1.5), "idle_timeout_ms.*with_idle_timeout"),
        (lambda: Serdes.time_windowed(None, 5), "not None"),
        (lambda: Serdes.time_windowed(Serdes.string(), "5 s"), "not '5 s'.*serde_from"),
        (lambda: Serdes.session_windowed(None), "not None"),
    ],
)
def test_an_option_rejects_what_kafkas_rejects(make: Any, sentence: str) -> None:
    """The error quotes the value."""
    with pytest.raises((ValueError, TypeError, TopologyError), match=sentence):
        make()


def test_the_retention_can_equal_the_window_size() -> None:
    """This is the shortest retention; disabling the cache of a versioned store is accepted."""
    assert Stores.window("w", 10, 10).retention_ms == 10
    assert not Stores.versioned("v", 5).with_caching_disabled().caching_enabled


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("statestore.cache.max.bytes", -1, "cannot be -1"),
        ("commit.interval.ms", -1, "cannot be -1"),
        ("windowstore.changelog.additional.retention.ms", -1, "cannot be -1"),
        ("num.stream.threads", 0, "cannot be 0"),
        ("replication.factor", -2, "cannot be -2"),
        ("processing.guarantee", "nope", "'nope'"),
        ("default.key.serde", 5, "expected a serde, not 5"),
        ("default.value.serde", "string", "expected a serde, not 'string'"),
        ("application.server", "nope", "'nope'.*host:port"),
        ("application.server", "host:port", "'host:port'"),
    ],
)
def test_an_application_rejects_what_streams_config_rejects(
    name: str, value: Any, sentence: str
) -> None:
    """A test driver rejects it, too."""
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    topology = builder.build()
    known = {"application.id": "app", "bootstrap.servers": "127.0.0.1:9"}
    with pytest.raises((ConfigError, TypeError), match=sentence):
        KafkaStreams(topology, {**known, name: value})
    with pytest.raises((ConfigError, TypeError), match=sentence):
        TopologyTestDriver(topology, {name: value})


def test_a_map_of_records_rejects_null_keys() -> None:
    """This is as in Kafka's readKeyValuesToMap."""
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input(1)
        out = driver.create_output_topic("out")
        with pytest.raises(ValueError, match=r"without a key.*read_key_values_to_list"):
            out.read_key_values_to_map()
