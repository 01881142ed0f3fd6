"""How an application gets on, in one line."""

from ottla.streams.progress import Progress, as_bytes, line


def test_a_line_has_rate_lag_and_state() -> None:
    """The rate is that of the time between two looks."""
    before = Progress(records=1000)
    now = Progress(batch=4, records=3500, lag=12, state_bytes=3 << 20, batch_ms=250)
    assert line("app", "RUNNING", now, before, 2.0) == (
        "app RUNNING | 1,250 records/s | lag 12 | state 3.0 MiB | batch 4 in 250 ms"
    )


def test_a_watermark_is_shown_where_there_is_one() -> None:
    """Most queries have none."""
    now = Progress(watermark="2026-01-01T00:00:00.000Z")
    assert "lag 0 | watermark 2026-01-01T00:00:00.000Z | state 0 B" in line("a", "b", now, now, 1)


def test_bytes_are_for_people() -> None:
    """In the unit that fits."""
    assert [as_bytes(1 << bits) for bits in (0, 10, 35, 50)] == [
        "1 B",
        "1.0 KiB",
        "32.0 GiB",
        "1024.0 TiB",
    ]
