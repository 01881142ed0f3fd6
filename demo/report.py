"""The final report of the demo: tables, and two plots."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from rich.table import Table

from demo.results import Frames
from demo.topology import CARRIERS, LONGEST, MAKERS, RUNS, SKIES

_NAMES = {"EWR": "Newark (EWR)", "JFK": "Kennedy (JFK)", "LGA": "LaGuardia (LGA)"}
_COLOURS = {"EWR": "#1b6ca8", "JFK": "#d1495b", "LGA": "#2a9d8f"}
_GREY = "#8d99ae"
_SKIES = ["fair", "wind", "rain or snow", "fog"]
_TOP = 5
# A few flights are not enough for an average of an hour or a run.
_FEW = 100
# The last evening of a month is the next day in UTC.
_A_DAY = pd.Timedelta(days=1)


def tables(came: Frames) -> list[Table]:
    """Return a table of the weather, one of planes' makers and one of the longest delays."""
    skies = came[SKIES].sort_values(["origin", "flights"], ascending=[True, False])
    makers = came[MAKERS].sort_values("flights", ascending=False)[:_TOP]
    longest = came[LONGEST].sort_values("delay", ascending=False)[:_TOP]
    worst = Table(title="The longest delays", title_style="bold")
    for column in ("flight", "from", "to", "scheduled", "late"):
        worst.add_column(column, justify="right" if column == "late" else "left")
    for row in longest.itertuples():
        when = pd.Timestamp(row.scheduled_ms, unit="ms", tz="America/New_York")
        late = f"{row.delay // 60} h {row.delay % 60:02d}"
        worst.add_row(row.flight, row.origin, row.destination, f"{when:%d %b %H:%M}", late)
    return [
        _delays("Flights and the weather of their hour", skies, ["origin", "weather"]),
        _delays("Flights by who made the plane", makers, ["maker"]),
        worst,
    ]


def _delays(title: str, rows: pd.DataFrame, names: list[str]) -> Table:
    shown = Table(title=title, title_style="bold")
    for column in names:
        shown.add_column(column)
    for column in ("flights", "cancelled", "mean delay"):
        shown.add_column(column, justify="right")
    for _, row in rows.iterrows():
        numbers = f"{row['flights']:,}", f"{row['flights'] - row['departed']:,}"
        mean = f"{row['delay'] / max(row['departed'], 1):.1f} min"
        shown.add_row(*(str(row[name]) for name in names), *numbers, mean)
    return shown


def plot(came: Frames, folder: Path) -> list[Path]:
    """Save two plots, of delays by hour, airline and weather and of planes' runs; return their
    paths.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flights, planes = folder / "flights.png", folder / "planes.png"
    figure, axes = plt.subplots(1, 3, figsize=(16, 5.2), layout="constrained")
    _plot_hours(axes[0], came[CARRIERS])
    _plot_carriers(axes[1], came[CARRIERS])
    _plot_skies(axes[2], came[SKIES])
    times = pd.to_datetime(came[CARRIERS]["start_ms"], unit="ms")
    period = f"{times.min():%B} to {times.max() - _A_DAY:%B} 2013"
    _save(figure, f"Delays grow through the day: departures from New York, {period}", flights)
    figure, axes = plt.subplots(1, 2, figsize=(13, 5.2), layout="constrained")
    _plot_runs(axes[0], came[RUNS])
    _plot_makers(axes[1], came[MAKERS])
    _save(figure, f"Planes that left New York, {period}", planes)
    return [flights, planes]


def _save(figure: Any, title: str, path: Path) -> None:
    figure.suptitle(title, fontsize=15, weight="bold")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _mean(rows: "pd.DataFrame | Any", by: Any, fewest: int = 0) -> "pd.Series[float]":
    sums = rows.groupby(by)[["departed", "delay"]].sum()
    sums = sums[sums["departed"] > fewest]
    found: pd.Series[float] = sums["delay"] / sums["departed"]
    return found


def _plot_hours(axes: Axes, windows: pd.DataFrame) -> None:
    starts = pd.to_datetime(windows["start_ms"], unit="ms", utc=True)
    hours = starts.dt.tz_convert("America/New_York").dt.hour.rename("hour")
    means = _mean(windows, hours, _FEW)
    axes.plot(means.index, means, marker="o", color=_COLOURS["EWR"])
    axes.set_title("Mean delay in windows of two hours (local time)")
    axes.set_xlabel("hour at which the window starts")
    axes.set_xticks(range(5, 24, 3))
    axes.set_ylabel("minutes")
    axes.axhline(0, color="black", linewidth=0.8)
    _tidy(axes)


def _plot_carriers(axes: Axes, windows: pd.DataFrame) -> None:
    _bars(axes, _mean(windows, "carrier", _FEW).sort_values(), "Mean delay by airline")


def _plot_makers(axes: Axes, makers: pd.DataFrame) -> None:
    _bars(axes, _mean(makers, "maker", _FEW).sort_values(), "Mean delay by who made the plane")


def _bars(axes: Axes, means: "pd.Series[float]", title: str) -> None:
    bars = axes.barh(means.index, means, color=_GREY)
    axes.bar_label(bars, [f"{mean:.1f}" for mean in means], padding=3, fontsize=9)
    axes.set_title(title)
    axes.set_xlabel("minutes")
    axes.tick_params(axis="y", labelsize=9)
    axes.margins(x=0.12)
    _tidy(axes)


def _plot_skies(axes: Axes, skies: pd.DataFrame) -> None:
    for place, (origin, name) in enumerate(_NAMES.items()):
        means = _mean(skies[skies["origin"] == origin], "weather").reindex(_SKIES)
        places = [number + (place - 1) * 0.27 for number in range(len(_SKIES))]
        axes.bar(places, means, width=0.25, label=name, color=_COLOURS[origin])
    axes.set_xticks(range(len(_SKIES)), _SKIES)
    axes.set_title("Mean delay by the weather of the hour")
    axes.set_ylabel("minutes")
    axes.legend(frameon=False)
    _tidy(axes)


def _plot_runs(axes: Axes, runs: pd.DataFrame) -> None:
    counts = runs["flights"].value_counts().sort_index()
    bars = axes.bar(counts.index.astype(str), counts, color=_COLOURS["LGA"])
    axes.bar_label(bars, [f"{count:,}" for count in counts], padding=2, fontsize=9)
    axes.set_title("How often a plane leaves before it pauses for eight hours")
    axes.set_xlabel("departures in a run")
    axes.set_ylabel("runs")
    _tidy(axes)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="both", alpha=0.25)
    axes.set_axisbelow(True)
