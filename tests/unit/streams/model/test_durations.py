"""Durations in all forms that users write."""

from datetime import timedelta

import pytest

from ottla.streams.model.durations import milliseconds


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (5, 5),
        ("250 ms", 250),
        ("10s", 10_000),
        ("5 min", 300_000),
        ("2 hours", 7_200_000),
        ("1 d", 86_400_000),
        (timedelta(minutes=1, milliseconds=1), 60_001),
    ],
)
def test_a_duration_is_converted_to_milliseconds(written: str, expected: int) -> None:
    """Numbers, texts with a unit, and timedelta are accepted."""
    assert milliseconds(written) == expected


@pytest.mark.parametrize("written", ["soon", "5", "3 weeks", -1, timedelta(seconds=-1)])
def test_an_invalid_duration_is_rejected(written: str) -> None:
    """A text without a known unit and a negative duration are errors."""
    with pytest.raises(ValueError, match=r"duration|unit"):
        milliseconds(written)
