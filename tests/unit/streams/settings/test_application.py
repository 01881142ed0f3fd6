"""The options of an application and the errors for invalid ones."""

from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.settings.application import (
    AppSettings,
    check_application_id,
    check_state_dir,
    checkpoint_of,
    read_settings,
)


def test_an_unknown_option_is_rejected_with_a_suggestion() -> None:
    """The name may have Kafka's spelling with dots."""
    with pytest.raises(ConfigError, match="did you mean commit_interval_ms"):
        read_settings({"commit.interval.ms": 5})
    with pytest.raises(ConfigError, match="known options: engine, processing_guarantee"):
        read_settings({"qwertz": 5})


def test_an_option_of_the_applications_own_is_no_keyword_argument() -> None:
    """The error says where it belongs; only a name that looks like a typing error is corrected."""
    with pytest.raises(ConfigError) as caught:
        read_settings({"my_option": 1})
    assert str(caught.value).startswith(
        "There is no option my_option of KafkaStreams; set an option of the application's own in "
        "app_configs={'my_option': …}, or in the mapping with Kafka's names; known options: "
    )
    with pytest.raises(ConfigError) as caught:
        read_settings({"sink_option": 1})
    assert str(caught.value) == (
        "There is no option sink_option of KafkaStreams; did you mean sink_options? Set an option of "
        "the application's own with a similar name in app_configs={'sink_option': …}."
    )


def test_processing_guarantees_are_kafkas() -> None:
    """Exactly once is supported only in version 2."""
    assert read_settings({"processing_guarantee": "exactly_once_v2"}).is_exactly_once
    assert not AppSettings().is_exactly_once
    with pytest.raises(ConfigError, match="choose at_least_once or exactly_once_v2"):
        read_settings({"processing_guarantee": "exactly_once"})


def test_a_checkpoint_is_named_after_its_application() -> None:
    """The checkpoint is in the given folder, or in a default one for all applications."""
    assert AppSettings(state_dir="/state/").checkpoint("app") == "/state/app"
    assert checkpoint_of(None, "app") == AppSettings().checkpoint("app")


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ü", ".."])
def test_an_application_id_can_name_topics_and_folders(name: str) -> None:
    """An id that is not allowed in names is rejected."""
    assert check_application_id("my_app-1.2") == "my_app-1.2"
    with pytest.raises(ConfigError, match="it is part of topic names"):
        check_application_id(name)


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("commit_interval_ms", "abc", 0),
        ("commit_interval_ms", -1, 0),
        ("max_records", 0, 1),
        ("session_timeout_ms", 1.5, 1),
        ("num_stream_threads", True, 1),
    ],
)
def test_numbers_are_validated(name: str, value: Any, least: int) -> None:
    """The check comes before the start of Spark, whose error would be less clear."""
    with pytest.raises(
        ConfigError, match=f"{name} cannot be .*: set a whole number of at least {least}"
    ):
        read_settings({name: value})
    assert read_settings({"num_stream_threads": None, "commit_interval_ms": 0}).max_records > 0


def test_an_invalid_state_dir_is_rejected(tmp_path: Path) -> None:
    """A missing folder is created; a URL is left to Spark."""
    check_state_dir(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    check_state_dir("hdfs://nowhere/state")
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ConfigError, match=r"state_dir cannot be .*Not a directory.*: set a directory"
    ):
        check_state_dir(str(tmp_path / "file" / "state"))
