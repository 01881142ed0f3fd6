"""The history on the pages of topics, groups and clusters: periods, and the data of the charts."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.history.points import LEVELS, Kind, Period, Subject
from ottla.console.page import Source, View

# The lines of a chart: the label and the field of a point.
CHARTS: Mapping[str, Mapping[str, str]] = {
    "rate": {"records/s": "records_per_s"},
    "size": {"bytes": "size_bytes"},
    "lag": {"lag (records)": "lag"},
    "lag_s": {"lag (s)": "lag_s"},
    "rates": {"written/s": "arrivals_per_s", "read/s": "records_per_s"},
}
PERIOD_LABELS = {Period.HOUR: "Hour", Period.DAY: "Day", Period.WEEK: "7 days"}


def history_of(view: View, kind: Kind, name: str = "") -> Mapping[str, Any]:
    """Return the names that `history.html` reads, for the charts of a subject."""
    return {
        "period": _period(view).value,
        "periods": [(period.value, label) for period, label in PERIOD_LABELS.items()],
        "history_kind": kind.value,
        "history_name": name,
        "history_is_full": view.console.history.is_full(view.cluster.name),
    }


def read_chart(view: View) -> Mapping[str, Any]:
    """Return the lines of a chart."""
    kind, chart = view.query.text("kind"), view.query.text("chart")
    if kind not in [item.value for item in Kind] or chart not in CHARTS:
        raise ConfigError(f"there is no chart {chart!r} of {kind!r}")
    period = _period(view)
    subject = Subject(Kind(kind), view.query.get("name", ""))
    now_s = view.cluster.now_ms() // 1000
    points = view.console.history.rates(view.cluster.name, subject, period, now_s)
    return {
        "at_s": [point.at_ms / 1000 for point in points],
        "series": {
            view.say(label): [getattr(point, field) for point in points]
            for label, field in CHARTS[chart].items()
        },
        "step_s": LEVELS[period.level].step_s,
    }


def _period(view: View) -> Period:
    text = view.query.text("period", Period.HOUR.value)
    try:
        return Period(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a period: use hour, day or week") from None


SOURCES = (Source("/history.json", read_chart),)
