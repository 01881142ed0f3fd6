"""The report of `bench.growth --cluster`: tables, the exponents of a power law, and a chart."""

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

REST = "at rest, per virtual second"
EVENTS = {
    "start": "every broker starts",
    "create": "a topic is created",
    REST: "",
    "isr change": "a follower leaves the ISR of some partitions, and returns",
    "loss": "a broker that is not the controller is killed",
    "return": "it is started again, and is in sync everywhere",
    "leader move": "the preferred leaders are elected",
    "fail over": "the controller is killed, and another one has informed all brokers",
    "delete": "the topic is deleted",
}
FIGURES = {
    "messages": "requests and responses except fetches",
    "fetches": "requests and responses",
    "bytes": "between brokers",
    "tree reads": "nodes",
    "tree writes": "nodes",
    "controller, CPU s": "",
    "a broker, CPU s": "the mean of the others",
    "seconds": "virtual",
}

Figures = dict[str, float]
Row = dict[str, Any]


class Growth(NamedTuple):
    """The exponents of a figure, cost ~ brokers^a x partitions^b, and the factor."""

    brokers: float
    partitions: float
    factor: float

    def at(self, brokers: int, partitions: int) -> float:
        """Return the figure that the fit expects."""
        return self.factor * float(brokers**self.brokers * partitions**self.partitions)


def fit(rows: Sequence[Row], event: str, figure: str) -> Growth | None:
    """Fit a power law by least squares to the logarithms; None if the figure is always 0."""
    points = [
        (math.log(row["brokers"]), math.log(row["partitions"]), math.log(value))
        for row in rows
        if (value := row["events"][event].get(figure, 0.0)) > 0
    ]
    if len(points) < 3:
        return None
    brokers, partitions, values = zip(*points, strict=True)
    by_brokers = _slope(_residuals(partitions, brokers), _residuals(partitions, values))
    by_partitions = _slope(_residuals(brokers, partitions), _residuals(brokers, values))
    level = statistics.fmean(value - by_brokers * x - by_partitions * y for x, y, value in points)
    return Growth(by_brokers, by_partitions, math.exp(level))


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    return statistics.linear_regression(x, y).slope if max(x) - min(x) > 1e-9 else 0.0


def _residuals(x: Sequence[float], y: Sequence[float]) -> list[float]:
    """Return y without its linear dependence on x (Frisch, Waugh and Lovell)."""
    slope, mean_x, mean_y = _slope(x, y), statistics.fmean(x), statistics.fmean(y)
    return [value - mean_y - slope * (at - mean_x) for at, value in zip(x, y, strict=True)]


def tables(rows: Sequence[Row]) -> list[str]:
    """Return a Markdown table for each event, and one of the exponents."""
    lines: list[str] = []
    for event, text in EVENTS.items():
        names = [*FIGURES, *(["elected after, s"] if event == "loss" else [])]
        lines += [f"## {event}{': ' if text else ''}{text}", ""]
        lines += [f"| brokers | partitions | changed | {' | '.join(names)} |"]
        lines += ["|" + "--:|" * (len(names) + 3)]
        for row in rows:
            figures = row["events"][event]
            cells = " | ".join(_text(figures[name]) for name in names)
            lines.append(
                f"| {row['brokers']:,} | {row['partitions']:,} | {figures['changed']:,} | {cells} |"
            )
        lines.append("")
    lines += ["## Exponents: brokers / partitions", ""]
    lines += [f"| event | {' | '.join(FIGURES)} |", "|---|" + "--:|" * len(FIGURES)]
    for event in EVENTS:
        growths = [fit(rows, event, name) for name in FIGURES]
        shown = (f"{item.brokers:.2f} / {item.partitions:.2f}" if item else "" for item in growths)
        lines.append(f"| {event} | {' | '.join(shown)} |")
    return [*lines, ""]


# -- the chart: processor time of the controller over partitions, on logarithmic axes
# -------------------------------------------------------------------------------------

_PANELS = ("create", "loss", "return", "leader move", "fail over", "delete")
_COLOURS = ("#2b6cb0", "#2f855a", "#c05621", "#6b46c1")
_PANEL_WIDTH, _PANEL_HEIGHT, _COLUMNS = 250, 220, 3
_SECONDS = (0.001, 0.01, 0.1, 1.0, 10.0)


def chart(rows: Sequence[Row]) -> str:
    """Return the processor time of the controller by event as SVG."""
    height = _PANEL_HEIGHT * math.ceil(len(_PANELS) / _COLUMNS) + 50
    width = _PANEL_WIDTH * _COLUMNS
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" aria-label="Processor time of the controller by event,'
        ' partitions and brokers" font-family="Helvetica, Arial, sans-serif" font-size="11"'
        ' fill="#1f2933">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<text x="20" y="24" font-size="15" font-weight="bold">Processor time of the controller, by'
        " partitions</text>",
    ]
    for index, event in enumerate(_PANELS):
        x = _PANEL_WIDTH * (index % _COLUMNS)
        y = 40 + _PANEL_HEIGHT * (index // _COLUMNS)
        lines += [f'<g transform="translate({x},{y})">', *_panel(rows, event), "</g>"]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(rows: Sequence[Row], event: str) -> list[str]:
    counts = sorted({row["partitions"] for row in rows})
    first, last = math.log10(counts[0]), math.log10(counts[-1])

    def at(partitions: float, seconds: float) -> tuple[float, float]:
        share = (math.log10(partitions) - first) / ((last - first) or 1)
        return 50 + 180 * share, 170 - 35 * (math.log10(max(seconds, 1e-3)) + 3)

    lines = [f'<text x="50" y="18" font-weight="bold">{event}</text>']
    for seconds in _SECONDS:
        y = at(counts[0], seconds)[1]
        lines.append(f'<path d="M50 {y:.0f}H230" stroke="#d9e2ec"/>')
        lines.append(f'<text x="44" y="{y + 4:.0f}" text-anchor="end">{seconds:g} s</text>')
    for count in counts:
        x = at(count, 1)[0]
        lines.append(f'<text x="{x:.0f}" y="190" text-anchor="middle">{count:,}</text>')
    for index, brokers in enumerate(sorted({row["brokers"] for row in rows})):
        points = [
            at(row["partitions"], row["events"][event]["controller, CPU s"])
            for row in sorted(rows, key=lambda row: int(row["partitions"]))
            if row["brokers"] == brokers
        ]
        line, colour = " ".join(f"{x:.1f},{y:.1f}" for x, y in points), _COLOURS[index % 4]
        lines.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
            f'<text x="{points[-1][0] - 4:.0f}" y="{points[-1][1] - 5:.0f}" text-anchor="end"'
            f' fill="{colour}">{brokers} brokers</text>'
        )
    return lines


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
