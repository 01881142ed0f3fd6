"""Points in time as users type them."""

import pytest

from ottla.operations.offsets.moments import parse_moment, render_moment

NOW_MS = 1_771_070_400_000  # 2026-02-14T12:00:00Z


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2026-02-14T12:00:00Z", NOW_MS),
        ("2026-02-14T12:00:00", NOW_MS),
        ("2026-02-14T13:00:00.001+01:00", NOW_MS + 1),
        ("2026-02-14", NOW_MS - 12 * 3_600_000),
        ("1771070400000", NOW_MS),
        ("-1h", NOW_MS - 3_600_000),
        ("now", NOW_MS),
    ],
)
def test_moments_are_dates_times_milliseconds_or_ages(text: str, milliseconds: int) -> None:
    """A time without a zone is UTC, so that it is the same on every machine."""
    assert parse_moment(text, NOW_MS) == milliseconds


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "12", "-1"])
def test_invalid_moment_is_an_error_with_examples(text: str) -> None:
    """The error shows an example of each form."""
    with pytest.raises(ValueError, match="use "):
        parse_moment(text, NOW_MS)


def test_printed_moment_can_be_parsed_again() -> None:
    """Milliseconds survive the round trip; a missing timestamp is printed as nothing."""
    assert render_moment(NOW_MS + 7) == "2026-02-14T12:00:00.007Z"
    assert parse_moment(render_moment(NOW_MS + 7), 0) == NOW_MS + 7
    assert render_moment(-1) == ""
