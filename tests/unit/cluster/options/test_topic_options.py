"""The topic options beside those of Apache Kafka 4.3.0: names, types, defaults, what they take.

`kafka_topic_options.json` holds what its own LogConfig said of each option and each of some values.
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
# Kafka's brokers refuse it as well while they have no tiered storage; the option itself does not.
REFUSED = {("remote.storage.enable", "true"), ("remote.storage.enable", "TRUE")}
# For tests only, in both. Kafka takes any number, and fails later for those that make no segment.
SMALLEST_SEGMENT = 14


def takes(name: str, value: str) -> bool:
    """Tell whether a topic may have the option set to the value."""
    try:
        TOPIC_OPTIONS.row(name).parse(value)
    except ConfigError as error:
        assert name in str(error), "a refusal names the option"
        return False
    return True


def test_the_options_are_kafkas_and_a_few_more() -> None:
    """None is missing, and what is added is known."""
    assert set(TOPIC_OPTIONS.rows) - set(KAFKA["options"]) <= OWN
    assert not set(KAFKA["options"]) - set(TOPIC_OPTIONS.rows)


@pytest.mark.parametrize("name", KAFKA["options"])
def test_type_and_default_are_kafkas(name: str) -> None:
    """As DescribeConfigs tells them."""
    row, kafka = TOPIC_OPTIONS.row(name), KAFKA["options"][name]
    assert row.type.name == kafka["type"]
    assert row.render(row.default) == kafka["default"]


@pytest.mark.parametrize("name", [name for name in KAFKA["options"] if name[:8] != "internal"])
def test_what_is_taken_is_what_kafka_takes(name: str) -> None:
    """Value by value, also those that only look like one; a refusal names the option."""
    accepted = set(KAFKA["options"][name]["accepts"])
    judged = {value: takes(name, value) for value in KAFKA["values"]}
    expected = {value: value in accepted for value in KAFKA["values"]}
    expected |= {value: False for option, value in REFUSED if option == name}
    assert judged == expected


def test_a_segment_has_room_for_something() -> None:
    """The option for tests takes what makes sense."""
    assert not takes("internal.segment.bytes", str(SMALLEST_SEGMENT - 1))
    assert takes("internal.segment.bytes", str(SMALLEST_SEGMENT))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "max.compaction.lag.ms"),
        ({"min.compaction.lag.ms": "4", "max.compaction.lag.ms": "4"}, None),
        # Without tiered storage there is nothing to compare.
        ({"retention.ms": "5", "local.retention.ms": "6"}, None),
        ({"retention.bytes": "5", "local.retention.bytes": "-1"}, None),
        ({"remote.log.copy.disable": "true", "retention.ms": "5"}, None),
        ({"remote.log.delete.on.disable": "true"}, None),
    ],
)
def test_options_are_judged_together(settings: dict[str, Any], reason: str | None) -> None:
    """As Kafka does: the two that contradict each other are named."""
    broker = BROKER_OPTIONS.parse({})
    if reason is None:
        option_tables.check_topic_settings(broker, settings)
        return
    with pytest.raises(ConfigError, match=reason) as refused:
        option_tables.check_topic_settings(broker, settings)
    assert all(name in str(refused.value) for name in settings)
