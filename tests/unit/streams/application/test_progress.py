"""The progress of an application, in one line."""

import pytest

from ottla.streams.application import progress
from ottla.streams.application.progress import Progress, as_bytes, line


def test_a_line_has_rate_lag_and_state() -> None:
    """The rate covers the time between two updates."""
    before = Progress(records=1000)
    now = Progress(batch=4, records=3500, lag=12, state_bytes=3 << 20, batch_ms=250)
    assert line("app RUNNING", now, before, 2.0) == (
        "app RUNNING | 1,250 records/s | lag 12 | state 3.0 MiB | batch 4 in 250 ms"
    )


def test_a_watermark_is_shown_if_there_is_one() -> None:
    """Most queries have no watermark."""
    now = Progress(watermark="2026-01-01T00:00:00.000Z")
    assert "| state 0 B | watermark 2026-01-01T00:00:00.000Z |" in line("a", now, now, 1)


def test_dropped_records_are_shown_if_there_are_any() -> None:
    """The number is the sum over all tasks."""
    now = Progress(dropped={"0_0": 1_200, "1_0": 34})
    assert now.dropped_records == 1_234
    assert "| state 0 B | dropped 1,234 | batch -1 in 0 ms" in line("a", now, now, 1)
    assert "dropped" not in line("a", Progress(), Progress(), 1)


def test_a_restore_is_shown_as_a_bar() -> None:
    """The number of records that are left follows the bar; nothing is shown after the restore."""
    now = Progress(restore_left=1_500, restore_total=6_000)
    assert line("app", now, now, 1).startswith(
        "app | restoring [###############-----] 1,500 left | 0 records/s | "
    )
    assert "restoring" not in line("app", Progress(restore_total=6_000), now, 1)


def test_a_line_fits_into_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least important parts are omitted first; a long name is cut."""
    monkeypatch.setattr(progress, "_today", lambda: "2026-01-01T")
    now = Progress(7, 1_234_567, 890, "2026-01-01T10:00:00Z", 5 << 20, 12_345)
    widths = (None, 110, 90, 79, 60, 45, 35, 20, 3)
    results = [line("words RUNNING", now, Progress(), 1.0, width) for width in widths]
    assert results == [
        "words RUNNING | 1,234,567 records/s | lag 890 | state 5.0 MiB | "
        "watermark 2026-01-01T10:00:00Z | batch 7 in 12,345 ms",
        "words RUNNING | 1,234,567 records/s | lag 890 | state 5.0 MiB | "
        "watermark 2026-01-01T10:00:00Z",
        "words RUNNING | 1,234,567/s | lag 890 | state 5.0 MiB | watermark 2026-01-01T10:00:00Z",
        "words RUNNING | 1,234,567/s | lag 890 | state 5.0 MiB | watermark 10:00:00Z",
        "words RUNNING | 1,234,567/s | lag 890 | state 5.0 MiB",
        "words RUNNING | 1,234,567/s | lag 890",
        "words RUNNING | 1,234,567/s",
        "words RUNNING",
        "wor",
    ]


def test_bytes_are_shown_in_a_readable_unit() -> None:
    """The unit is the largest that fits, up to TiB."""
    assert [as_bytes(1 << bits) for bits in (0, 10, 35, 50)] == [
        "1 B",
        "1.0 KiB",
        "32.0 GiB",
        "1024.0 TiB",
    ]
