"""Changes of dynamic settings: their results, and the error code of each rejected change."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.cluster.options import option_tables
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.controller.planning import configs
from ottla.controller.planning.requests import Alteration, ConfigChange

SET, DELETE = Alteration.SET, Alteration.DELETE
APPEND, SUBTRACT = Alteration.APPEND, Alteration.SUBTRACT
BROKER = option_tables.parse_broker_settings({}).snapshot


def alter(current: dict[str, str], *changes: ConfigChange) -> dict[str, str]:
    """Apply changes to a topic's settings."""
    return configs.alter_topic(current, changes, BROKER)


def code_of(*changes: ConfigChange) -> ErrorCode:
    """Return the error code with which a topic's changes are rejected."""
    with pytest.raises(ApiError) as caught:
        alter({}, *changes)
    return caught.value.code


def test_set_replaces_and_delete_removes_a_setting() -> None:
    """Settings that no change names stay as they are."""
    current = {"retention.ms": "5", "segment.ms": "6", "flush.ms": "7"}
    changes = (ConfigChange("retention.ms", SET, " 9 "), ConfigChange("segment.ms", DELETE))
    assert alter(current, *changes) == {"retention.ms": "9", "flush.ms": "7"}


def test_deleting_an_unset_or_unknown_setting_is_no_error() -> None:
    """A setting that an older version stored can be removed."""
    assert alter({"old": "1"}, ConfigChange("old", DELETE), ConfigChange("flush.ms", DELETE)) == {}


@pytest.mark.parametrize(
    ("current", "change", "policy"),
    [
        ({}, ConfigChange("cleanup.policy", APPEND, "compact"), "delete,compact"),
        (
            {"cleanup.policy": "delete,compact"},
            ConfigChange("cleanup.policy", APPEND, "compact"),
            "delete,compact",
        ),
        (
            {"cleanup.policy": "delete,compact"},
            ConfigChange("cleanup.policy", SUBTRACT, "delete"),
            "compact",
        ),
        ({}, ConfigChange("cleanup.policy", SUBTRACT, "delete"), ""),
        ({}, ConfigChange("cleanup.policy", SUBTRACT, "compact"), "delete"),
    ],
)
def test_lists_are_appended_to_and_subtracted_from(
    current: dict[str, str], change: ConfigChange, policy: str
) -> None:
    """A list that is not set begins with its default, and never contains an item twice."""
    assert alter(current, change) == {"cleanup.policy": policy}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (ConfigChange("nope", SET, "1"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", SET, "abc"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", SET, ""), ErrorCode.INVALID_CONFIG),
        (ConfigChange("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (ConfigChange("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("cleanup.policy", APPEND, "shred"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        (ConfigChange("remote.storage.enable", SET, "true"), ErrorCode.INVALID_CONFIG),
    ],
)
def test_an_invalid_topic_setting_is_rejected(change: ConfigChange, code: ErrorCode) -> None:
    """The error codes are the same as in Apache Kafka 4.3."""
    assert code_of(change) is code


def test_a_key_may_occur_only_once_in_a_request() -> None:
    """Two changes of the same key are rejected with INVALID_REQUEST."""
    change = ConfigChange("retention.ms", SET, "1")
    assert code_of(change, change) is ErrorCode.INVALID_REQUEST


def test_settings_that_contradict_each_other_are_rejected() -> None:
    """The settings are validated together, not only one by one."""
    code = code_of(
        ConfigChange("min.compaction.lag.ms", SET, "10"),
        ConfigChange("max.compaction.lag.ms", SET, "5"),
    )
    assert code is ErrorCode.INVALID_CONFIG


def test_the_error_for_an_unknown_setting_suggests_the_nearest() -> None:
    """The message for a misspelt setting contains the correct name."""
    with pytest.raises(ApiError, match=r"retention\.sm; did you mean retention\.ms"):
        alter({}, ConfigChange("retention.sm", SET, "1"))


def test_a_setting_without_value_is_rejected_at_creation() -> None:
    """Null is not a valid value of a topic's setting."""
    with pytest.raises(ApiError, match=r"Null value .* segment\.bytes") as caught:
        configs.check_topic({"segment.bytes": None}, BROKER)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_a_dynamic_broker_setting_is_altered() -> None:
    """A broker setting that can be changed at run time is stored."""
    change = ConfigChange("log.retention.ms", SET, "12345")
    assert configs.alter_broker({}, (change,), BROKER) == {"log.retention.ms": "12345"}


def test_a_broker_option_that_is_not_known_is_stored() -> None:
    """As in Kafka, whose plug-ins have options of their own; it has no items."""
    change = ConfigChange("nope", SET, " 3 ")
    altered = configs.alter_broker({}, (change,), BROKER)
    assert altered == {"nope": "3"}
    assert configs.alter_broker(altered, (ConfigChange("nope", DELETE),), BROKER) == {}
    with pytest.raises(ApiError, match="nope is not a list") as caught:
        configs.alter_broker(altered, (ConfigChange("nope", Alteration.APPEND, "4"),), BROKER)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    many = {f"nope-{number}": "1" for number in range(1000)}
    with pytest.raises(ApiError, match="has more than 1000 options that brokers do not know"):
        configs.alter_broker(many, (change,), BROKER)


def test_only_named_hosts_may_connect() -> None:
    """max.connections.per.ip can be 0 if hosts are named, and as long as they are."""
    hosts = {"max.connections.per.ip.overrides": "localhost:5"}
    change = ConfigChange("max.connections.per.ip", SET, "0")
    altered = configs.alter_broker(hosts, (change,), BROKER)
    assert altered == {**hosts, "max.connections.per.ip": "0"}
    broker = Snapshot(BROKER_OPTIONS, BROKER_OPTIONS.parse(altered).explicit)
    with pytest.raises(ApiError, match="every connection would be refused"):
        configs.alter_broker(altered, (ConfigChange(*hosts, DELETE),), broker)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (ConfigChange("num.partitions", SET, "3"), "cannot be changed while the broker runs"),
        (ConfigChange("log.retention.hours", DELETE), "cannot be changed while the broker runs"),
        (ConfigChange("ssl.client.auth", SET, "required"), "cannot be changed while the broker"),
        (ConfigChange("ssl.client.atuh", SET, "required"), "did you mean ssl.client.auth"),
        (ConfigChange("sasl.jaas.config", SET, "x"), "would have no effect: it is needed for a"),
        (ConfigChange("listener.name.x.ssl.client.atuh", SET, "x"), "would have no effect"),
        (ConfigChange("log.retention.ms", SET, "abc"), "Not a number of type LONG"),
        (ConfigChange("max.connections.per.ip", SET, "0"), "every connection would be refused"),
        (ConfigChange("max.connections.per.ip.overrides", SET, "x:y"), "pair of host and number"),
        (ConfigChange("log.cleaner.threads", SET, "-3"), "Value must be at least 0"),
    ],
)
def test_an_invalid_broker_setting_is_rejected(change: ConfigChange, reason: str) -> None:
    """The error code for broker settings is INVALID_REQUEST, as in Kafka."""
    with pytest.raises(ApiError, match=reason) as caught:
        configs.alter_broker({}, (change,), BROKER)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
