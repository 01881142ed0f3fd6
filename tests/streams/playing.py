"""Plays scripted events on our driver, and shows what is written as Scenarios.java does."""

from dataclasses import replace

from ottla.base.errors import OttlaError
from ottla.streams import Serdes, Topology, TopologyTestDriver
from ottla.streams.stores.builders import DefaultSerdes
from ottla.streams.task.task import TaskSettings, TopicRecord
from tests.streams.recorded.configured import CONFIGURED, build_configured, settings
from tests.streams.recorded.shaped import SHAPED, build_shaped
from tests.streams.recorded.shapes import Given
from tests.streams.recorded.topologies import build
from tests.streams.transcripts import is_compared, line

# What ends an application in Kafka ends ours, if with other words.
_FAILURES = (OttlaError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def told(scenario: str) -> tuple[str, Given]:
    """Return a scenario's name and its parameters."""
    name, *words = scenario.split(" ")
    pairs = (each.partition("=") for each in words)
    return name, Given({key: value for key, _, value in pairs})


def topology_of(scenario: str) -> Topology:
    """Return the topology of a scenario's line."""
    name, given = told(scenario)
    if name in SHAPED:
        return build_shaped(name, given)
    return build_configured(name) if name in CONFIGURED else build(name)


def settings_of(scenario: str) -> TaskSettings:
    """Return how the application of a scenario's line is configured, as in Java."""
    name, given = told(scenario)
    configured = settings(name) if name in CONFIGURED else TaskSettings("test")
    is_throttled = name.endswith("_throttled") or given.get("throttled") == "1"
    cache = 1 << 20 if given.get("cache") == "1" else configured.statestore_cache_max_bytes
    return replace(
        configured,
        defaults=DefaultSerdes(Serdes.string(), Serdes.string()),
        emit_interval_ms=1000 if is_throttled else 0,
        statestore_cache_max_bytes=cache,
    )


def driver_of(scenario: str) -> TopologyTestDriver:
    """Return our driver with the topology of a scenario's line."""
    return TopologyTestDriver(topology_of(scenario), settings=settings_of(scenario))


def written(driver: TopologyTestDriver) -> list[str]:
    """Return what was written since the last time, a line a record, topic by topic."""
    lines = []
    for topic in sorted(filter(is_compared, driver.produced_topic_names)):
        queue = driver.produced(topic)
        lines += [line(queue.popleft()) for _ in range(len(queue))]
    return lines


def _bytes(word: str) -> bytes | None:
    return None if word == "-" else word.encode()


def record_of(event: str) -> TopicRecord:
    """Return the record of an event: `pipe TOPIC KEY TIMESTAMP VALUE`, maybe with headers `h=v,i=w`."""
    _, _, key, time, value, *rest = event.split(" ")
    pairs = [each.partition("=") for each in (rest[0].split(",") if rest else [])]
    headers = [(name, _bytes(word)) for name, _, word in pairs]
    return TopicRecord(_bytes(key), _bytes(value), int(time), headers)


def play_event(driver: TopologyTestDriver, event: str) -> list[str]:
    """Let an event happen; return what was written."""
    words = event.split(" ")
    if words[0] == "clock":
        driver.advance_wall_clock_time(int(words[1]))
    else:
        driver.pipe(words[1], record_of(event))
    return written(driver)


def play(scenario: str, events: list[str]) -> list[str]:
    """Return what Scenarios.java prints of a scenario: the description, events and what they wrote."""
    try:
        driver = driver_of(scenario)
        lines = [*str(topology_of(scenario).describe()).splitlines(), "events"]
    except _FAILURES as error:
        return [f"failed {error!r}"]
    with driver:
        for event in events:
            lines.append(event)
            try:
                lines += play_event(driver, event)
            except _FAILURES as error:
                return [*lines, f"failed {error!r}"]
    return lines
