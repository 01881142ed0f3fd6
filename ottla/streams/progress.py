"""How an application gets on, as one line for people; pure."""

from dataclasses import dataclass

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class Progress:
    """What has been done so far.

    `records` counts offsets since the application started, `lag` those that wait; `watermark` is Spark's, empty
    where the query has none.
    """

    batch: int = -1
    records: int = 0
    lag: int = 0
    watermark: str = ""
    state_bytes: int = 0
    batch_ms: int = 0


def as_bytes(count: int) -> str:
    """Return a number of bytes for people."""
    number = float(count)
    for unit in _UNITS[:-1]:
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} {_UNITS[-1]}"


def line(name: str, state: str, now: Progress, before: Progress, seconds: float) -> str:
    """Return the line that says what happened in so many seconds."""
    rate = (now.records - before.records) / seconds if seconds > 0 else 0.0
    parts = [
        f"{name} {state}",
        f"{max(rate, 0):,.0f} records/s",
        f"lag {now.lag:,}",
        f"state {as_bytes(now.state_bytes)}",
        f"batch {now.batch} in {now.batch_ms} ms",
    ]
    if now.watermark:
        parts.insert(3, f"watermark {now.watermark}")
    return " | ".join(parts)
