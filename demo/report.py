"""What the demo shows in the end: whether every total is right, a table, and a plot."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from rich.table import Table

from demo.events import AIRLINE, AIRPORT

_NAMES = {"EWR": "Newark (EWR)", "JFK": "Kennedy (JFK)", "LGA": "LaGuardia (LGA)"}
_COLOURS = {"EWR": "#1b6ca8", "JFK": "#d1495b", "LGA": "#2a9d8f"}
_KEYS = ["kind", "name", "start"]
_TOTALS = ["flights", "departed", "delay"]


def disagreements(found: pd.DataFrame, expected: pd.DataFrame) -> list[str]:
    """Return a sentence for each total that is missing, doubled, invented or wrong."""
    sentences = []
    doubled = found[found.duplicated(_KEYS)]
    sentences += [f"{_place(row)} came more than once" for row in doubled.itertuples()]
    both = expected.merge(
        found.drop_duplicates(_KEYS), "outer", _KEYS, suffixes=("_file", "_topic"), indicator=True
    )
    for row in both[both["_merge"] == "left_only"].itertuples():
        sentences.append(f"{_place(row)} is missing")
    for row in both[both["_merge"] == "right_only"].itertuples():
        sentences.append(f"{_place(row)} is not in the file")
    common = both[both["_merge"] == "both"]
    for name in _TOTALS:
        for row in common[common[f"{name}_file"] != common[f"{name}_topic"]].itertuples():
            right, wrong = getattr(row, f"{name}_file"), getattr(row, f"{name}_topic")
            sentences.append(f"{_place(row)}: {name} should be {right:.0f}, not {wrong:.0f}")
    means = common["delay_file"] / common["departed_file"].where(common["departed_file"] > 0)
    wrong_means = common[(means - common["mean_delay"]).abs().fillna(0) > 1e-9]
    without = common[means.isna() != common["mean_delay"].isna()]
    for row in pd.concat([wrong_means, without]).itertuples():
        sentences.append(f"{_place(row)}: the mean delay is wrong")
    return sentences


def _place(row: object) -> str:
    kind, name, start = (getattr(row, key) for key in _KEYS)
    return f"{kind} {name} from {start}"


def table(found: pd.DataFrame) -> Table:
    """Return a table of airports and of airlines, the latter by their mean delay."""
    shown = Table(title="Flights that left New York in 2013", title_style="bold")
    shown.add_column("")
    for title in ("flights", "cancelled", "mean delay"):
        shown.add_column(title, justify="right")
    for kind in (AIRPORT, AIRLINE):
        sums = _sums(found, kind)
        for name, row in sums.iterrows():
            cancelled = row["flights"] - row["departed"]
            shown.add_row(
                _NAMES.get(str(name), str(name)),
                f"{row['flights']:,.0f}",
                f"{cancelled:,.0f}",
                f"{row['mean']:.1f} min",
            )
        shown.add_section()
    return shown


def _sums(found: pd.DataFrame, kind: str) -> pd.DataFrame:
    sums = found[found["kind"] == kind].groupby("name")[_TOTALS].sum()
    sums["mean"] = sums["delay"] / sums["departed"]
    return sums.sort_values("mean", ascending=False)


def plot(found: pd.DataFrame, path: Path) -> None:
    """Save a picture: delay by hour of the day for each airport, and by airline."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 5.6), width_ratios=(3, 2), layout="constrained"
    )
    _plot_hours(left, found)
    _plot_airlines(right, found)
    figure.suptitle(
        "Delays grow through the day: departures from New York, 2013", fontsize=15, weight="bold"
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plot_hours(axes: Axes, found: pd.DataFrame) -> None:
    airports = found[found["kind"] == AIRPORT]
    hours = airports["start"].dt.tz_convert("America/New_York").dt.hour.rename("hour")
    sums = airports.groupby([airports["name"], hours])[_TOTALS].sum()
    # A handful of flights in a year says nothing of an hour.
    sums = sums[sums["departed"] >= 100]
    means = (sums["delay"] / sums["departed"]).unstack("name")
    for name in means.columns:
        axes.plot(means.index, means[name], marker="o", label=_NAMES[name], color=_COLOURS[name])
    axes.set_title("Mean departure delay by scheduled hour (local time)")
    axes.set_xlabel("hour of the day")
    axes.set_ylabel("minutes")
    axes.set_xticks(range(5, 24, 2))
    axes.axhline(0, color="black", linewidth=0.8)
    axes.legend(loc="upper left", frameon=False)
    _tidy(axes)


def _plot_airlines(axes: Axes, found: pd.DataFrame) -> None:
    sums = _sums(found, AIRLINE).iloc[::-1]
    bars = axes.barh(sums.index, sums["mean"], color="#8d99ae")
    labels = [f"{mean:.1f}" for mean in sums["mean"]]
    axes.bar_label(bars, labels, padding=3, fontsize=9)
    axes.set_title("Mean departure delay by airline")
    axes.set_xlabel("minutes")
    axes.tick_params(axis="y", labelsize=9)
    axes.margins(x=0.12)
    _tidy(axes)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="both", alpha=0.25)
    axes.set_axisbelow(True)
