"""The pipeline: five results of flights, weather, planes and airports, as one topology of
`ottla.streams`.

| topic          | contents                               | operators                              |
|----------------|----------------------------------------|----------------------------------------|
| carrier-delays | delays by airline, every two hours     | hopping windows, final results         |
| weather-delays | delays by airport and weather          | join of two streams, a table           |
| plane-makers   | delays by manufacturer of the plane    | join of a stream with a table, a table |
| plane-runs     | a plane's flights without a long pause | session windows, final results         |
| alerts         | each flight that left two hours late   | join of a stream with a global table   |
| longest-delays | five worst alerts by airport and week  | tumbling windows, every change         |

The record's timestamp is the scheduled departure. The grace of windows is a week, because topics
are read in parallel, and one may be ahead of another.
"""

from typing import Any

import msgspec

from demo.events import AIRPORTS, FLIGHTS, PLANES, WEATHER, Airport, Flight, Plane, Weather
from ottla.streams import (
    EmitStrategy,
    JoinWindows,
    KStream,
    Materialized,
    Serde,
    Serdes,
    SessionWindows,
    StreamJoined,
    StreamsBuilder,
    TimeWindows,
    Topology,
)

CARRIERS, SKIES, MAKERS = "carrier-delays", "weather-delays", "plane-makers"
RUNS, ALERTS, LONGEST = "plane-runs", "alerts", "longest-delays"

HOUR_MS = 3_600_000
WINDOW_MS, ADVANCE_MS = 2 * HOUR_MS, HOUR_MS
PAUSE_MS = 8 * HOUR_MS
WEEK_MS = 7 * 24 * HOUR_MS
ALERT_MINUTES = 120
TOP = 5
_GRACE = "7 d"


class Delays(msgspec.Struct):
    """The numbers of flights and of departures, and the sum of the delays in minutes."""

    flights: int = 0
    departed: int = 0
    delay: int = 0


class Run(msgspec.Struct):
    """The flights of a plane in one session."""

    flights: int = 0
    delay: int = 0
    longest: int = 0


class Alert(msgspec.Struct):
    """A flight that left very late, as text for people."""

    flight: str
    origin: str
    destination: str
    scheduled_ms: int
    delay: int


class Ranking(msgspec.Struct):
    """The longest delays, the longest one first."""

    alerts: list[Alert] = msgspec.field(default_factory=list)


class Skies(msgspec.Struct):
    """Delays by the weather."""

    delays: dict[str, Delays] = msgspec.field(default_factory=dict)


class Seen(msgspec.Struct):
    """A flight's delay with the attribute that it is grouped by: the weather, or the plane's maker."""

    group: str
    delay: int | None


TEXT = Serdes.string()
_FLIGHT, _SEEN, _DELAYS = Serdes.json(Flight), Serdes.json(Seen), Serdes.json(Delays)
CARRIER_WINDOW = Serdes.time_windowed(TEXT, WINDOW_MS)
RUN_WINDOW = Serdes.session_windowed(TEXT)
WEEK_WINDOW = Serdes.time_windowed(TEXT, WEEK_MS)


def _kept(value: Serde[Any]) -> Materialized[str, Any]:
    return Materialized.with_(TEXT, value)


def _kept_to_close(value: Serde[Any]) -> Materialized[str, Any]:
    # As in Kafka, a store removes entries that are older than this, whether they were emitted or
    # not.
    return _kept(value).with_retention("16 d")


def add_delay(flight: Flight | Seen, delays: Delays) -> Delays:
    """Add a flight to the delays."""
    if flight.delay is None:
        return Delays(delays.flights + 1, delays.departed, delays.delay)
    return Delays(delays.flights + 1, delays.departed + 1, delays.delay + flight.delay)


def add_flight(flight: Flight, run: Run) -> Run:
    """Add a flight to a plane's run."""
    delay = flight.delay or 0
    return Run(run.flights + 1, run.delay + delay, max(run.longest, delay))


def merge_runs(one: Run, other: Run) -> Run:
    """Merge two runs of one plane."""
    longest = max(one.longest, other.longest)
    return Run(one.flights + other.flights, one.delay + other.delay, longest)


def rank(alert: Alert, ranking: Ranking) -> Ranking:
    """Add an alert to the ranking, if it is among the longest."""
    alerts = [*ranking.alerts, alert]
    alerts.sort(key=lambda each: (-each.delay, each.scheduled_ms, each.flight))
    return Ranking(alerts[:TOP])


def add_to_sky(seen: Seen, skies: Skies) -> Skies:
    """Add a flight to the delays of its weather."""
    delays = add_delay(seen, skies.delays.get(seen.group, Delays()))
    return Skies({**skies.delays, seen.group: delays})


def see_weather(flight: Flight, weather: Weather) -> Seen:
    """Join a flight with the weather of its hour."""
    if weather.visibility < 2:
        group = "fog"
    elif weather.precipitation > 0:
        group = "rain or snow"
    else:
        group = "wind" if (weather.wind_speed or 0) >= 20 else "fair"
    return Seen(group, flight.delay)


def see_maker(flight: Flight, plane: Plane) -> Seen:
    """Join a flight with the maker of its plane."""
    return Seen(plane.maker, flight.delay)


def alert_of(flight: Flight, airport: Airport | None) -> Alert:
    """Return the text of an alert; a few destinations are not in the file of airports."""
    destination = flight.destination if airport is None else airport.name
    name = f"{flight.carrier}{flight.number}"
    assert flight.delay is not None
    return Alert(name, flight.origin, destination, flight.scheduled_ms, flight.delay)


def is_alarming(flight: Flight) -> bool:
    """Return True if a flight left very late."""
    return flight.delay is not None and flight.delay >= ALERT_MINUTES


Flights = KStream[str, Flight]


def _carriers(flights: Flights) -> None:
    windows = TimeWindows.of_size_and_grace(WINDOW_MS, _GRACE).advance_by(ADVANCE_MS)
    grouped = flights.group_by(lambda flight: flight.carrier, key=TEXT, name="by-carrier")
    windowed = grouped.windowed_by(windows).emit_strategy(EmitStrategy.on_window_close())
    delays = windowed.aggregate(Delays, add_delay, _kept_to_close(_DELAYS))
    delays.to_stream().to(CARRIERS, key=CARRIER_WINDOW, value=_DELAYS)


def _skies(flights: Flights, weather: KStream[str, Weather]) -> None:
    # The weather of 10:00 applies to flights from 10:00 to 10:59.
    hour = JoinWindows.of_time_difference_and_grace(0, _GRACE).before(HOUR_MS - 1)
    serdes = StreamJoined(TEXT, _FLIGHT, Serdes.json(Weather), name="by-origin")
    by_origin = flights.select_key(lambda flight: flight.origin)
    seen = by_origin.join(weather, see_weather, hour, serdes).group_by_key(key=TEXT, value=_SEEN)
    skies = Serdes.json(Skies)
    seen.aggregate(Skies, add_to_sky, _kept(skies)).to_stream().to(SKIES, key=TEXT, value=skies)


def _makers(flights: Flights, planes: Any) -> None:
    seen = flights.join(planes, see_maker)
    grouped = seen.group_by(lambda each: each.group, key=TEXT, value=_SEEN, name="by-maker")
    delays = grouped.aggregate(Delays, add_delay, _kept(_DELAYS))
    delays.to_stream().to(MAKERS, key=TEXT, value=_DELAYS)


def _runs(flights: Flights) -> None:
    sessions = SessionWindows.of_inactivity_gap_with_no_grace(PAUSE_MS)
    windowed = flights.group_by_key().windowed_by(sessions)
    windowed = windowed.emit_strategy(EmitStrategy.on_window_close())
    runs = windowed.aggregate(Run, add_flight, merge_runs, _kept_to_close(Serdes.json(Run)))
    runs.to_stream().to(RUNS, key=RUN_WINDOW, value=Serdes.json(Run))


def _alerts(flights: Flights, airports: Any) -> None:
    late = flights.filter(is_alarming)
    alerts = late.left_join(airports, lambda flight: flight.destination, alert_of)
    written = Serdes.json(Alert)
    alerts.to(ALERTS, key=TEXT, value=written)
    by_origin = alerts.group_by(
        lambda alert: alert.origin, key=TEXT, value=written, name="alerts-by-origin"
    )
    weeks = by_origin.windowed_by(TimeWindows.of_size_and_grace(WEEK_MS, _GRACE))
    ranking = Serdes.json(Ranking)
    longest = weeks.aggregate(Ranking, rank, _kept(ranking))
    longest.to_stream().to(LONGEST, key=WEEK_WINDOW, value=ranking)


def build() -> Topology:
    """Return the topology; it runs in a TopologyTestDriver and on Spark."""
    builder = StreamsBuilder()
    flights: Flights = builder.stream(FLIGHTS, key=TEXT, value=_FLIGHT)
    weather = builder.stream(WEATHER, key=TEXT, value=Serdes.json(Weather))
    planes = builder.table(PLANES, key=TEXT, value=Serdes.json(Plane))
    airports = builder.global_table(AIRPORTS, key=TEXT, value=Serdes.json(Airport))
    _carriers(flights)
    _skies(flights, weather)
    _makers(flights, planes)
    _runs(flights)
    _alerts(flights, airports)
    return builder.build()
