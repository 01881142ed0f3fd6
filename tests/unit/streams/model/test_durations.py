"""Lengths of time as users write them."""

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
def test_a_duration_is_a_number_of_milliseconds(written: str, expected: int) -> None:
    """Numbers, text with a unit and timedelta all do."""
    assert milliseconds(written) == expected


@pytest.mark.parametrize("written", ["soon", "5", "3 weeks", -1, timedelta(seconds=-1)])
def test_what_is_no_duration_is_refused(written: str) -> None:
    """Text without a known unit and negative lengths are errors."""
    with pytest.raises(ValueError, match=r"duration|unit"):
        milliseconds(written)
