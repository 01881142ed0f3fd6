"""The expected results, computed by pandas from the files; the actual results; and their
differences.

A result is a data frame. One or more columns (`KEYS`) identify a row; the others must be equal.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from demo import topology
from demo.events import Files, milliseconds
from demo.topology import ALERTS, CARRIERS, LONGEST, MAKERS, RUNS, SKIES

Frames = dict[str, pd.DataFrame]
Entry = tuple[bytes | None, bytes | None]

KEYS = {
    CARRIERS: ["carrier", "start_ms"],
    SKIES: ["origin", "weather"],
    MAKERS: ["maker"],
    RUNS: ["plane", "start_ms", "end_ms"],
    ALERTS: ["flight", "origin", "scheduled_ms"],
    LONGEST: ["origin", "start_ms", "rank"],
}
# In these topics a record is an update: the last one of a key counts. In the others each record is
# a row.
_CHANGES = {SKIES, MAKERS, LONGEST}
_SHOWN = 20


def expected(files: Files) -> Frames:
    """Return all results as pandas computes them."""
    flights = files.flights.assign(scheduled_ms=milliseconds(files.flights["scheduled"]))
    alerts = _alerts(flights, files.airports)
    return {
        CARRIERS: _carriers(flights),
        SKIES: _skies(flights, files.weather),
        MAKERS: _delays(flights.merge(files.planes, on="tailnum"), manufacturer="maker"),
        RUNS: _runs(flights),
        ALERTS: alerts,
        LONGEST: _longest(alerts),
    }


def _delays(flights: pd.DataFrame, **names: str) -> pd.DataFrame:
    """Return flights, departures and delays by columns, with new names."""
    grouped = flights.groupby(list(names))["dep_delay"]
    found = grouped.agg(flights="size", departed="count", delay="sum").reset_index()
    return found.rename(columns=names).astype({"delay": "int64"})


def _carriers(flights: pd.DataFrame) -> pd.DataFrame:
    size, advance = topology.WINDOW_MS, topology.ADVANCE_MS
    latest = flights["scheduled_ms"] // advance * advance
    parts = [flights.assign(start_ms=latest - back) for back in range(0, size, advance)]
    return _delays(pd.concat(parts), carrier="carrier", start_ms="start_ms")


def _skies(flights: pd.DataFrame, weather: pd.DataFrame) -> pd.DataFrame:
    hours = flights.assign(hour=flights["scheduled"].dt.floor("h"))
    both = hours.merge(weather, on=["origin", "hour"])
    is_foggy, is_wet, is_windy = both["visib"] < 2, both["precip"] > 0, both["wind_speed"] >= 20
    names = ["fog", "rain or snow", "wind"]
    both["sky"] = np.select([is_foggy, is_wet, is_windy], names, "fair")
    return _delays(both, origin="origin", sky="weather")


def _runs(flights: pd.DataFrame) -> pd.DataFrame:
    known = flights.dropna(subset="tailnum").sort_values(["tailnum", "scheduled_ms"])
    pauses = known.groupby("tailnum")["scheduled_ms"].diff()
    number = (pauses.isna() | (pauses > topology.PAUSE_MS)).cumsum()
    delay = known["dep_delay"].fillna(0).astype("int64")
    known = known.assign(number=number, delay=delay, first=known["scheduled_ms"])
    runs = known.groupby("number").agg(
        plane=("tailnum", "first"),
        start_ms=("first", "min"),
        end_ms=("scheduled_ms", "max"),
        flights=("delay", "size"),
        delay=("delay", "sum"),
        longest=("delay", "max"),
    )
    # A plane that always left early has no long delay.
    return runs.assign(longest=runs["longest"].clip(lower=0)).reset_index(drop=True)


def _alerts(flights: pd.DataFrame, airports: pd.DataFrame) -> pd.DataFrame:
    late = flights[flights["dep_delay"] >= topology.ALERT_MINUTES]
    both = late.merge(airports, left_on="dest", right_on="faa", how="left")
    found = {
        "flight": both["carrier"] + both["flight"].astype(str),
        "origin": both["origin"],
        "destination": both["name"].fillna(both["dest"]),
        "scheduled_ms": both["scheduled_ms"],
        "delay": both["dep_delay"].astype("int64"),
    }
    return pd.DataFrame(found)


def _longest(alerts: pd.DataFrame) -> pd.DataFrame:
    week = topology.WEEK_MS
    rows = alerts.assign(start_ms=alerts["scheduled_ms"] // week * week)
    rows = rows.sort_values(["delay", "scheduled_ms", "flight"], ascending=[False, True, True])
    rows["rank"] = rows.groupby(["origin", "start_ms"]).cumcount() + 1
    return rows[rows["rank"] <= topology.TOP]


Read = Callable[[bytes, bytes], Iterable[dict[str, Any]]]


def _read_carrier(key: bytes, value: bytes) -> Iterable[dict[str, Any]]:
    window = topology.CARRIER_WINDOW.deserialize(key)
    yield {"carrier": window.key, "start_ms": window.window.start, **msgspec.json.decode(value)}


def _read_sky(key: bytes, value: bytes) -> Iterable[dict[str, Any]]:
    for weather, delays in msgspec.json.decode(value)["delays"].items():
        yield {"origin": key.decode(), "weather": weather, **delays}


def _read_maker(key: bytes, value: bytes) -> Iterable[dict[str, Any]]:
    yield {"maker": key.decode(), **msgspec.json.decode(value)}


def _read_run(key: bytes, value: bytes) -> Iterable[dict[str, Any]]:
    run = topology.RUN_WINDOW.deserialize(key)
    times = {"start_ms": run.window.start, "end_ms": run.window.end}
    yield {"plane": run.key, **times, **msgspec.json.decode(value)}


def _read_alert(_: bytes, value: bytes) -> Iterable[dict[str, Any]]:
    yield msgspec.json.decode(value)


def _read_longest(key: bytes, value: bytes) -> Iterable[dict[str, Any]]:
    week = topology.WEEK_WINDOW.deserialize(key)
    for rank, alert in enumerate(msgspec.json.decode(value)["alerts"], 1):
        yield {**alert, "start_ms": week.window.start, "rank": rank}


_READ: dict[str, Read] = {
    CARRIERS: _read_carrier,
    SKIES: _read_sky,
    MAKERS: _read_maker,
    RUNS: _read_run,
    ALERTS: _read_alert,
    LONGEST: _read_longest,
}


def found(topic: str, entries: Iterable[Entry]) -> pd.DataFrame:
    """Return the result in the records of a topic, whose keys and values are in order."""
    kept = dict(entries).items() if topic in _CHANGES else entries
    rows = (row for key, value in kept if key and value for row in _READ[topic](key, value))
    return pd.DataFrame(list(rows))


def disagreements(came: Frames, right: Frames) -> list[str]:
    """Return a sentence for each row of each result that is missing, duplicate, unexpected or
    wrong.
    """
    return [text for topic in right for text in differences(topic, came[topic], right[topic])]


def differences(topic: str, came: pd.DataFrame, right: pd.DataFrame) -> list[str]:
    """Return a sentence for each wrong row of one result."""
    keys = KEYS[topic]
    if came.empty:
        return [f"{topic}: nothing came"]
    doubled = came[came.duplicated(keys)]
    sentences = [f"{_place(topic, row)} came more than once" for _, row in doubled.iterrows()]
    both = right.merge(
        came.drop_duplicates(keys), "outer", keys, suffixes=("_file", "_topic"), indicator=True
    )
    for side, text in (("left_only", "is missing"), ("right_only", "is not in the file")):
        alone = both[both["_merge"] == side]
        sentences += [f"{_place(topic, row)} {text}" for _, row in alone.iterrows()]
    common = both[both["_merge"] == "both"]
    for name in (column for column in right.columns if column not in keys):
        for _, row in common[common[f"{name}_file"] != common[f"{name}_topic"]].iterrows():
            should, came_as = _plain(row[f"{name}_file"]), _plain(row[f"{name}_topic"])
            sentences.append(f"{_place(topic, row)}: {name} should be {should}, not {came_as}")
    return sentences


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _place(topic: str, row: Any) -> str:
    words = (
        pd.Timestamp(row[key], unit="ms").isoformat(" ") if key.endswith("_ms") else str(row[key])
        for key in KEYS[topic]
    )
    return f"{topic}: {', '.join(words)}"


def summary(sentences: list[str]) -> str:
    """Return the first sentences, and the number of the others."""
    more = len(sentences) - _SHOWN
    shown = sentences[:_SHOWN] + ([f"… and {more:,} more"] if more > 0 else [])
    return "\n".join(shown)
