"""Durations as users type them."""

import pytest

from ottla.client.config.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("250ms", 250),
        ("1.5s", 1_500),
        ("2d", 172_800_000),
        ("P1DT2H", 93_600_000),
        ("PT0.5S", 500),
        ("P1W", 604_800_000),
    ],
)
def test_durations_are_short_or_iso_8601(text: str, milliseconds: int) -> None:
    """Both forms are converted to milliseconds."""
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1x", "1h 2", "P", "PT", "P1DT", "P1M", "-1h", "\u0663h", "9" * 50_000]
)
def test_invalid_duration_is_an_error_with_examples(text: str) -> None:
    """Months have no fixed length, and a number needs a unit."""
    with pytest.raises(ValueError, match="use a form like 90s"):
        parse_duration(text)
