"""The internal topics of an application have Kafka's names and settings."""

import pytest

from ottla.streams import Serdes, SessionWindows, Stores, StreamsBuilder, TimeWindows
from ottla.streams.layout.internal_topics import (
    changelog_config,
    internal_topics,
    latest_changes,
)
from ottla.streams.layout.layout import Application, lay_out
from ottla.streams.model.names import is_internal
from ottla.streams.settings.application import read_settings
from ottla.streams.task.task import ProducedRecord, TaskSettings

_TEXT = Serdes.string()
_LONGEST = (1 << 63) - 1


def test_each_logged_store_has_a_changelog_with_a_partition_per_task() -> None:
    """It is compacted; a window store's topic also has a retention time."""
    builder = StreamsBuilder()
    words = builder.stream("words", key=_TEXT, value=_TEXT)
    words.group_by_key().count("all")
    words.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(1000)).count("windows")
    application = Application(builder.build(), TaskSettings("app"), keeps_changelogs=True)
    entries = {
        internal_topic.name: internal_topic
        for internal_topic in internal_topics(lay_out([application], {"words": 3}))
    }
    assert set(entries) == {"app-all-changelog", "app-windows-changelog"}
    assert {entry.partitions for entry in entries.values()} == {3}
    assert entries["app-all-changelog"].config == {"cleanup.policy": "compact"}
    assert entries["app-windows-changelog"].config["cleanup.policy"] == "compact,delete"


def test_window_changelogs_have_an_additional_day_of_retention() -> None:
    """windowstore.changelog.additional.retention.ms changes it, up to the largest retention.ms."""
    store = Stores.window("store", 5000, 1000)
    default = read_settings({}).windowstore_changelog_additional_retention_ms
    assert changelog_config(store, default)["retention.ms"] == str(5000 + 86_400_000)
    assert changelog_config(store, 0)["retention.ms"] == "5000"
    assert changelog_config(store, _LONGEST)["retention.ms"] == str(_LONGEST)
    builder = StreamsBuilder()
    words = builder.stream("words", key=_TEXT, value=_TEXT)
    words.group_by_key().windowed_by(SessionWindows.of_inactivity_gap_with_no_grace(7)).count("s")
    settings = TaskSettings("app", additional_retention_ms=1)
    application = Application(builder.build(), settings, keeps_changelogs=True)
    (changelog,) = internal_topics(lay_out([application], {"words": 1}))
    retention_ms = builder.build().stores["s"].retention_ms
    assert changelog.config["retention.ms"] == str(retention_ms + 1)


def test_a_micro_batch_logs_only_the_last_change_of_a_key() -> None:
    """Changes go to the task's partition; records of other topics are unchanged."""
    rows = [
        ProducedRecord("out", b"a", b"1", 0, ()),
        ProducedRecord("log", b"a", b"1", 0, ()),
        ProducedRecord("log", b"b", b"1", 1, ()),
        ProducedRecord("log", b"a", b"2", 2, ()),
        ProducedRecord("out", b"a", b"2", 2, ()),
    ]
    expected = [
        rows[0],
        rows[2]._replace(partition=4),
        rows[3]._replace(partition=4),
        rows[4],
    ]
    assert latest_changes(rows, {"log": Stores.key_value("store")}, 4) == expected


def test_a_micro_batch_logs_every_version_of_a_versioned_store() -> None:
    """A version is a key and a timestamp; of several values for it only the last is logged."""
    rows = [
        ProducedRecord("log", b"k", b"new", 100, ()),
        ProducedRecord("log", b"k", b"replaced", 50, ()),
        ProducedRecord("log", b"k", b"old", 50, ()),
    ]
    expected = [row._replace(partition=0) for row in (rows[0], rows[2])]
    assert latest_changes(rows, {"log": Stores.versioned("store", "1 h")}, 0) == expected


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("app-counts-changelog", True),
        ("app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition", True),
        ("app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000015-topic", True),
        ("app-joined-subscription-registration-topic", True),
        ("app-my-own-topic", False),
        ("other-counts-changelog", False),
        ("app", False),
    ],
)
def test_internal_topics_are_recognized_by_name(topic: str, expected: bool) -> None:
    """A reset deletes them, but never a topic of the user."""
    assert is_internal(topic, "app") is expected
