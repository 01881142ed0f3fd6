"""`--log-level`: a level for all loggers, and levels for single ones."""

import logging

import pytest

from ottla.base.errors import ConfigError
from ottla.base.logs import TRACE
from ottla.tools.broker.levels import Levels, parse_levels


def test_default_level_is_warning() -> None:
    """The default level is WARNING."""
    assert parse_levels([]) == Levels(logging.WARNING, {})


def test_level_for_all_and_levels_for_single_loggers() -> None:
    """Levels are in any order, with the names of Python or of log4j."""
    parsed = parse_levels(["ottla.controller=debug", "INFO", "ottla.net=trace"])
    assert parsed == Levels(logging.INFO, {"ottla.controller": logging.DEBUG, "ottla.net": TRACE})
    assert parse_levels(["warn"]).level == parse_levels(["warning"]).level == logging.WARNING


@pytest.mark.parametrize("text", ["loud", "=info", "ottla.net=", "ottla.net=loud", ""])
def test_invalid_level_is_rejected(text: str) -> None:
    """The error lists the valid levels."""
    with pytest.raises(ConfigError, match="trace, debug, info"):
        parse_levels([text])
