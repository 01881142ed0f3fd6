"""Play scripted events on our driver, and format the output like Scenarios.java."""

from dataclasses import replace

from ottla.base.errors import OttlaError
from ottla.streams import Serdes, Topology, TopologyTestDriver
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.task.task import TaskSettings, TopicRecord
from tests.streams.recorded.configured import CONFIGURED, build_configured, settings
from tests.streams.recorded.shaped import SHAPED, build_shaped
from tests.streams.recorded.shapes import ScenarioParameters
from tests.streams.recorded.topologies import build
from tests.streams.transcripts import is_compared, line

# Errors that end an application in Kafka also end ours, with another message.
_FAILURES = (OttlaError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def parse_scenario(scenario: str) -> tuple[str, ScenarioParameters]:
    """Return the name and the parameters of a scenario."""
    name, *words = scenario.split(" ")
    pairs = (word.partition("=") for word in words)
    return name, ScenarioParameters({key: value for key, _, value in pairs})


def topology_of(scenario: str) -> Topology:
    """Return the topology of a scenario's line."""
    name, inputs = parse_scenario(scenario)
    if name in SHAPED:
        return build_shaped(name, inputs)
    return build_configured(name) if name in CONFIGURED else build(name)


def settings_of(scenario: str) -> TaskSettings:
    """Return the settings of the application in a scenario's line, as in Java."""
    name, inputs = parse_scenario(scenario)
    configured = settings(name) if name in CONFIGURED else TaskSettings("test")
    is_throttled = name.endswith("_throttled") or inputs.get("throttled") == "1"
    cache = 1 << 20 if inputs.get("cache") == "1" else configured.statestore_cache_max_bytes
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
    """Return the records since the last call, one per line, by topic."""
    lines = []
    for topic in sorted(filter(is_compared, driver.produced_topic_names)):
        queue = driver.produced(topic)
        lines += [line(queue.popleft()) for _ in range(len(queue))]
    return lines


def _bytes(word: str) -> bytes | None:
    return None if word == "-" else word.encode()


def record_of(event: str) -> TopicRecord:
    """Return the record of an event: `pipe TOPIC KEY TIMESTAMP VALUE [h=v,i=w]`."""
    _, _, key, time, value, *rest = event.split(" ")
    pairs = [each.partition("=") for each in (rest[0].split(",") if rest else [])]
    headers = [(name, _bytes(word)) for name, _, word in pairs]
    return TopicRecord(_bytes(key), _bytes(value), int(time), headers)


def play_event(driver: TopologyTestDriver, event: str) -> list[str]:
    """Play an event; return the lines of the written records."""
    fields = event.split(" ")
    if fields[0] == "clock":
        driver.advance_wall_clock_time(int(fields[1]))
    else:
        driver.pipe(fields[1], record_of(event))
    return written(driver)


def play(scenario: str, events: list[str]) -> list[str]:
    """Return the output of Scenarios.java for a scenario: description, events and their records."""
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
