"""A processor whose records are commands to a store: the counterpart of Commands.java."""

from collections.abc import Callable
from typing import Any

from ottla.streams import (
    Processor,
    PunctuationType,
    Record,
    SessionWindow,
    Stores,
    StreamsBuilder,
    ValueAndTimestamp,
    Windowed,
)
from ottla.streams.model.records import VersionedRecord
from ottla.streams.stores.builders import StoreBuilder
from tests.streams.recorded.shapes import TEXT, ScenarioParameters, text
from tests.streams.recorded.topologies import from_in


def _store(parameters: ScenarioParameters) -> StoreBuilder:
    retention, size = parameters.number("retention", 20), parameters.number("size", 10)
    kinds = {
        "key_value": Stores.key_value("store", TEXT, TEXT),
        "timestamped": Stores.timestamped_key_value("store", TEXT, TEXT),
        "window": Stores.window("store", retention, size, TEXT, TEXT),
        "session": Stores.session("store", retention, TEXT, TEXT),
        "versioned": Stores.versioned("store", retention, TEXT, TEXT),
    }
    store = kinds[parameters.get("kind")]
    return store.with_caching_enabled() if parameters.get("cache") == "1" else store


def build_commands(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    """Build the topology with a store of the given type."""
    b.add_state_store(_store(parameters))
    from_in(b).process(_Commands, "store").to("out")


class _Commands(Processor[str, str, str, str]):
    def init(self, context: Any) -> None:
        super().init(context)
        self._kept: Any = context.store("store")
        self._schedules: list[Any] = []

    def process(self, record: Record[str, str]) -> None:
        if record.key is None or record.value is None:
            return
        fields = record.value.split(",")
        response: Any = None
        if fields[0] == "stop":
            if self._schedules:
                self._schedules.pop(0).cancel()
        elif fields[0] == "tick":
            self._schedule(fields, record)
        else:
            name, arguments = fields[0], [_word(word) for word in fields[1:]]
            response = self._ask(name, record.key, arguments)
        self.context.forward(record.with_value(_shown(response)))

    def _schedule(self, words: list[str], record: Record[str, str]) -> None:
        stream = words[1] == "stream"
        kind = PunctuationType.STREAM_TIME if stream else PunctuationType.WALL_CLOCK_TIME

        def tick(now: int) -> None:
            context = self.context
            times = f"{context.current_stream_time_ms()}/{context.current_system_time_ms()}"
            context.forward(Record(record.key, f"tick{words[2]}{words[1]}{times}", now))

        self._schedules.append(self.context.schedule(int(words[2]), kind, tick))

    def _ask(self, name: str, key: str, arguments: list[Any]) -> Any:
        remaining = self._kept
        kinds: dict[str, Callable[..., Any]] = {
            "KeyValueStore": _key_value,
            "TimestampedKeyValueStore": _timestamped,
            "WindowStore": _window,
            "SessionStore": _session,
            "VersionedKeyValueStore": _versioned,
        }
        return kinds[type(remaining).__name__](remaining, name, key, arguments)


def _word(word: str) -> Any:
    if word == "-":
        return None
    return int(word) if word.lstrip("-").isdigit() else word


def _timestamped(remaining: Any, name: str, key: str, arguments: list[Any]) -> Any:
    if name == "put":
        value, time = arguments
        return remaining.put(key, None if value is None else ValueAndTimestamp(value, time))
    return _key_value(remaining, name, key, arguments)


def _key_value(remaining: Any, name: str, key: str, arguments: list[Any]) -> Any:
    commands: dict[str, Callable[..., Any]] = {
        "put": lambda value: remaining.put(key, value),
        "pia": lambda value: remaining.put_if_absent(key, value),
        "del": lambda: remaining.delete(key),
        "get": lambda: remaining.get(key),
        "range": remaining.range,
        "rrange": remaining.reverse_range,
        "prefix": lambda prefix: remaining.prefix_scan(prefix, TEXT),
        "all": remaining.all,
        "rall": remaining.reverse_all,
    }
    return commands[name](*arguments)


def _window(remaining: Any, name: str, key: str, arguments: list[Any]) -> Any:
    commands: dict[str, Callable[..., Any]] = {
        "put": lambda value, start: remaining.put(key, value, start),
        "get": lambda start: remaining.fetch(key, start),
        "fetch": lambda low, high: remaining.fetch(key, low, high),
        "bfetch": lambda low, high: remaining.backward_fetch(key, low, high),
        "kfetch": remaining.fetch,
        "bkfetch": remaining.backward_fetch,
        "bfall": remaining.backward_fetch_all,
        "ball": remaining.backward_all,
        "fall": remaining.fetch_all,
        "all": remaining.all,
    }
    return commands[name](*arguments)


def _session(remaining: Any, name: str, key: str, arguments: list[Any]) -> Any:
    def at(start: int, end: int) -> Windowed[str]:
        return Windowed(key, SessionWindow(start, end))

    commands: dict[str, Callable[..., Any]] = {
        "put": lambda value, start, end: remaining.put(at(start, end), value),
        "rm": lambda start, end: remaining.remove(at(start, end)),
        "get": lambda start, end: remaining.fetch_session(key, start, end),
        "find": lambda low, high: remaining.find_sessions(key, low, high),
        "bfind": lambda low, high: remaining.backward_find_sessions(key, low, high),
        "kfind": remaining.find_sessions,
        "bkfind": remaining.backward_find_sessions,
        "fetch": lambda: remaining.fetch(key),
        "bfetch": lambda: remaining.backward_fetch(key),
        "kfetch": remaining.fetch,
        "bkfetch": remaining.backward_fetch,
    }
    return commands[name](*arguments)


def _versioned(remaining: Any, name: str, key: str, arguments: list[Any]) -> Any:
    # Java's store returns numbers instead of None, and does not return the end of the validity.
    commands: dict[str, Callable[..., Any]] = {
        "put": lambda value, time: _valid_to(remaining.put(key, value, time)),
        "del": lambda time: remaining.delete(key, time),
        "get": lambda: remaining.get(key),
        "asof": lambda time: remaining.get_as_of(key, time),
    }
    return commands[name](*arguments)


def _valid_to(result: int | None) -> int:
    return -(1 << 63) if result is None else result


def _shown(result: Any) -> str:
    if isinstance(result, ValueAndTimestamp | VersionedRecord):
        return f"{text(result.value)}@{result.timestamp}"
    if hasattr(result, "__next__"):
        return "[" + "".join(f"{key}={_shown(value)};" for key, value in result) + "]"
    return text(result)
