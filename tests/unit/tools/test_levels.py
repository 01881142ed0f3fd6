"""`--log-level`: one level for all, others for single loggers."""

import logging

import pytest

from ottla.base.errors import ConfigError
from ottla.base.logs import TRACE
from ottla.tools.broker.levels import Levels, parse_levels


def test_without_a_word_there_are_warnings() -> None:
    """And errors."""
    assert parse_levels([]) == Levels(logging.WARNING, {})


def test_a_level_for_all_and_levels_for_some() -> None:
    """In any order, in Python's words or log4j's."""
    found = parse_levels(["ottla.controller=debug", "INFO", "ottla.net=trace"])
    assert found == Levels(logging.INFO, {"ottla.controller": logging.DEBUG, "ottla.net": TRACE})
    assert parse_levels(["warn"]).level == parse_levels(["warning"]).level == logging.WARNING


@pytest.mark.parametrize("text", ["loud", "=info", "ottla.net=", "ottla.net=loud", ""])
def test_what_is_no_level_is_refused(text: str) -> None:
    """With the words that may be used."""
    with pytest.raises(ConfigError, match="trace, debug, info"):
        parse_levels([text])
