"""The options of an application: known ones, and words about the others."""

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.app_settings import (
    AppSettings,
    check_application_id,
    checkpoint_of,
    read_settings,
)


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    """Also where it is written as Kafka's properties are."""
    with pytest.raises(ConfigError, match="is commit_interval_ms meant"):
        read_settings({"commit.interval.ms": 5})
    with pytest.raises(ConfigError, match="there are: processing_guarantee"):
        read_settings({"qwertz": 5})


def test_guarantees_are_kafkas() -> None:
    """Version 2 of exactly once is the one there is."""
    assert read_settings({"processing_guarantee": "exactly_once_v2"}).is_exactly_once
    assert not AppSettings().is_exactly_once
    with pytest.raises(ConfigError, match="choose at_least_once or exactly_once_v2"):
        read_settings({"processing_guarantee": "exactly_once"})


def test_a_checkpoint_is_named_after_its_application() -> None:
    """In the folder that was told, or in one of all applications."""
    assert AppSettings(state_dir="/state/").checkpoint("app") == "/state/app"
    assert checkpoint_of(None, "app") == AppSettings().checkpoint("app")


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ü", ".."])
def test_an_application_id_can_name_topics_and_folders(name: str) -> None:
    """What cannot is refused."""
    assert check_application_id("my_app-1.2") == "my_app-1.2"
    with pytest.raises(ConfigError, match="it names topics"):
        check_application_id(name)
