"""Figures of processes without /proc."""

import pytest

from ottla.base.platform import processes


@pytest.mark.parametrize(
    ("text", "seconds"), [("0:01.50", 1.5), ("01:02:03", 3723.0), ("4-01:00:00", 349_200.0)]
)
def test_processor_time_of_ps_is_parsed(text: str, seconds: float) -> None:
    """The system decides on the form: macOS writes hundredths, Linux and the BSDs hours and days."""
    assert processes.seconds_of_ps(text) == seconds


def test_own_figures_without_proc() -> None:
    """Memory and processor time come from getrusage."""
    figures = processes.figures_of_usage()
    assert figures is not None
    assert figures.resident_bytes > 10_000
    assert figures.cpu_seconds > 0
    assert figures.threads_count >= 1
