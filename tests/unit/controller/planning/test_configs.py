"""What changes of dynamic settings come to, and what is refused with which code."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.options import option_tables
from ottla.controller.planning import configs
from ottla.controller.planning.requests import Alteration, ConfigChange

SET, DELETE = Alteration.SET, Alteration.DELETE
APPEND, SUBTRACT = Alteration.APPEND, Alteration.SUBTRACT
BROKER = option_tables.parse_broker_settings({}).snapshot


def alter(current: dict[str, str], *changes: ConfigChange) -> dict[str, str]:
    """Alter a topic's settings."""
    return configs.alter_topic(current, changes, BROKER)


def code_of(*changes: ConfigChange) -> ErrorCode:
    """Return the code that a topic's change is refused with."""
    with pytest.raises(ApiError) as caught:
        alter({}, *changes)
    return caught.value.code


def test_set_replaces_and_delete_removes() -> None:
    """What is not named stays as it is."""
    current = {"retention.ms": "5", "segment.ms": "6", "flush.ms": "7"}
    changes = (ConfigChange("retention.ms", SET, " 9 "), ConfigChange("segment.ms", DELETE))
    assert alter(current, *changes) == {"retention.ms": "9", "flush.ms": "7"}


def test_deleting_what_is_not_set_or_not_known_is_no_error() -> None:
    """A setting that an older version left behind can be removed."""
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
    """A list that is not set begins as its default; nothing is in it twice."""
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
def test_a_bad_topic_setting_is_refused(change: ConfigChange, code: ErrorCode) -> None:
    """The codes are Apache Kafka 4.3's."""
    assert code_of(change) is code


def test_a_key_may_be_named_once() -> None:
    """Which of two values is meant would be a guess."""
    change = ConfigChange("retention.ms", SET, "1")
    assert code_of(change, change) is ErrorCode.INVALID_REQUEST


def test_settings_that_contradict_each_other_are_refused() -> None:
    """The whole of the settings is checked, not each alone."""
    code = code_of(
        ConfigChange("min.compaction.lag.ms", SET, "10"),
        ConfigChange("max.compaction.lag.ms", SET, "5"),
    )
    assert code is ErrorCode.INVALID_CONFIG


def test_an_unknown_topic_setting_names_the_nearest() -> None:
    """A slip of the finger is found at once."""
    with pytest.raises(ApiError, match=r"retention\.sm; did you mean retention\.ms"):
        alter({}, ConfigChange("retention.sm", SET, "1"))


def test_a_setting_without_value_is_refused_at_creation() -> None:
    """Null is no value of a topic's setting."""
    with pytest.raises(ApiError, match=r"Null value .* segment\.bytes") as caught:
        configs.check_topic({"segment.bytes": None}, BROKER)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_a_dynamic_broker_setting_is_altered() -> None:
    """What may change while the broker runs is stored."""
    change = ConfigChange("log.retention.ms", SET, "12345")
    assert configs.alter_broker({}, (change,), BROKER) == {"log.retention.ms": "12345"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (ConfigChange("num.partitions", SET, "3"), "cannot be changed while the broker runs"),
        (ConfigChange("log.retention.hours", DELETE), "cannot be changed while the broker runs"),
        (ConfigChange("nope", SET, "3"), "Unknown broker config name: nope"),
        (ConfigChange("log.retention.ms", SET, "abc"), "not a value of type LONG"),
        (ConfigChange("log.cleaner.threads", SET, "-3"), "value must be at least 0"),
    ],
)
def test_a_bad_broker_setting_is_refused(change: ConfigChange, reason: str) -> None:
    """Kafka answers INVALID_REQUEST for brokers."""
    with pytest.raises(ApiError, match=reason) as caught:
        configs.alter_broker({}, (change,), BROKER)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
