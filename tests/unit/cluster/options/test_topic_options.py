"""The topic options compared with Apache Kafka 4.3.0: names, types, defaults, valid values.

`kafka_topic_options.json` has the results of Kafka's own LogConfig for each option and some values
of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.cluster.options import option_tables
from ottla.cluster.options.option_tables import BROKER_OPTIONS, TOPIC_OPTIONS

KAFKA = json.loads(Path(__file__).with_name("kafka_topic_options.json").read_text("utf-8"))
OWN = {"flush.on.ack", "strict.records"}
# Kafka's brokers reject it as well while they have no tiered storage; the option itself accepts it.
REFUSED = {("remote.storage.enable", "true"), ("remote.storage.enable", "TRUE")}
# For tests only, in both. Kafka accepts any number, and fails later for those that are too small
# for a segment.
SMALLEST_SEGMENT = 14


def takes(name: str, value: str) -> bool:
    """Return whether a topic may set the option to the value."""
    try:
        TOPIC_OPTIONS.row(name).parse(value)
    except ConfigError as error:
        assert name in str(error), "a refusal names the option"
        return False
    return True


def test_options_include_all_of_kafka() -> None:
    """No option is missing, and the additional ones are known."""
    assert set(TOPIC_OPTIONS.rows) - set(KAFKA["options"]) <= OWN
    assert not set(KAFKA["options"]) - set(TOPIC_OPTIONS.rows)


@pytest.mark.parametrize("name", KAFKA["options"])
def test_type_and_default_are_those_of_kafka(name: str) -> None:
    """Type and default are those that Kafka returns in DescribeConfigs."""
    row, kafka = TOPIC_OPTIONS.row(name), KAFKA["options"][name]
    assert row.type.name == kafka["type"]
    assert row.render(row.default) == kafka["default"]


@pytest.mark.parametrize("name", [name for name in KAFKA["options"] if name[:8] != "internal"])
def test_valid_values_are_those_of_kafka(name: str) -> None:
    """Each value is accepted or rejected as by Kafka, and an error names the option."""
    accepted = set(KAFKA["options"][name]["accepts"])
    judged = {value: takes(name, value) for value in KAFKA["values"]}
    expected = {value: value in accepted for value in KAFKA["values"]}
    expected |= {value: False for option, value in REFUSED if option == name}
    assert judged == expected


def test_internal_segment_bytes_has_a_minimum() -> None:
    """The minimum of internal.segment.bytes is large enough for a batch."""
    assert not takes("internal.segment.bytes", str(SMALLEST_SEGMENT - 1))
    assert takes("internal.segment.bytes", str(SMALLEST_SEGMENT))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "max.compaction.lag.ms"),
        ({"min.compaction.lag.ms": "4", "max.compaction.lag.ms": "4"}, None),
        # Without tiered storage no values can be compared.
        ({"retention.ms": "5", "local.retention.ms": "6"}, None),
        ({"retention.bytes": "5", "local.retention.bytes": "-1"}, None),
        ({"remote.log.copy.disable": "true", "retention.ms": "5"}, None),
        ({"remote.log.delete.on.disable": "true"}, None),
    ],
)
def test_contradictory_options_are_rejected(settings: dict[str, Any], reason: str | None) -> None:
    """The error names the two contradictory options, as in Kafka."""
    broker = BROKER_OPTIONS.parse({})
    if reason is None:
        option_tables.check_topic_settings(broker, settings)
        return
    with pytest.raises(ConfigError, match=reason) as refused:
        option_tables.check_topic_settings(broker, settings)
    assert all(name in str(refused.value) for name in settings)
