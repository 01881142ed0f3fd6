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
from tests.streams.recorded.shapes import TEXT, Given, text
from tests.streams.recorded.topologies import from_in


def _store(given: Given) -> StoreBuilder:
    retention, size = given.number("retention", 20), given.number("size", 10)
    kinds = {
        "key_value": Stores.key_value("store", TEXT, TEXT),
        "timestamped": Stores.timestamped_key_value("store", TEXT, TEXT),
        "window": Stores.window("store", retention, size, TEXT, TEXT),
        "session": Stores.session("store", retention, TEXT, TEXT),
        "versioned": Stores.versioned("store", retention, TEXT, TEXT),
    }
    store = kinds[given.get("kind")]
    return store.with_caching_enabled() if given.get("cache") == "1" else store


def build_commands(b: StreamsBuilder, given: Given) -> None:
    """Build the topology with a store of the given type."""
    b.add_state_store(_store(given))
    from_in(b).process(_Commands, "store").to("out")


class _Commands(Processor[str, str, str, str]):
    def init(self, context: Any) -> None:
        super().init(context)
        self._kept: Any = context.store("store")
        self._schedules: list[Any] = []

    def process(self, record: Record[str, str]) -> None:
        if record.key is None or record.value is None:
            return
        words = record.value.split(",")
        found: Any = None
        if words[0] == "stop":
            if self._schedules:
                self._schedules.pop(0).cancel()
        elif words[0] == "tick":
            self._schedule(words, record)
        else:
            name, arguments = words[0], [_word(each) for each in words[1:]]
            found = self._ask(name, record.key, arguments)
        self.context.forward(record.with_value(_shown(found)))

    def _schedule(self, words: list[str], record: Record[str, str]) -> None:
        stream = words[1] == "stream"
        kind = PunctuationType.STREAM_TIME if stream else PunctuationType.WALL_CLOCK_TIME

        def tick(now: int) -> None:
            context = self.context
            times = f"{context.current_stream_time_ms()}/{context.current_system_time_ms()}"
            context.forward(Record(record.key, f"tick{words[2]}{words[1]}{times}", now))

        self._schedules.append(self.context.schedule(int(words[2]), kind, tick))

    def _ask(self, name: str, key: str, arguments: list[Any]) -> Any:
        kept = self._kept
        kinds: dict[str, Callable[..., Any]] = {
            "KeyValueStore": _key_value,
            "TimestampedKeyValueStore": _timestamped,
            "WindowStore": _window,
            "SessionStore": _session,
            "VersionedKeyValueStore": _versioned,
        }
        return kinds[type(kept).__name__](kept, name, key, arguments)


def _word(word: str) -> Any:
    if word == "-":
        return None
    return int(word) if word.lstrip("-").isdigit() else word


def _timestamped(kept: Any, name: str, key: str, arguments: list[Any]) -> Any:
    if name == "put":
        value, time = arguments
        return kept.put(key, None if value is None else ValueAndTimestamp(value, time))
    return _key_value(kept, name, key, arguments)


def _key_value(kept: Any, name: str, key: str, arguments: list[Any]) -> Any:
    commands: dict[str, Callable[..., Any]] = {
        "put": lambda value: kept.put(key, value),
        "pia": lambda value: kept.put_if_absent(key, value),
        "del": lambda: kept.delete(key),
        "get": lambda: kept.get(key),
        "range": kept.range,
        "rrange": kept.reverse_range,
        "prefix": lambda prefix: kept.prefix_scan(prefix, TEXT),
        "all": kept.all,
        "rall": kept.reverse_all,
    }
    return commands[name](*arguments)


def _window(kept: Any, name: str, key: str, arguments: list[Any]) -> Any:
    commands: dict[str, Callable[..., Any]] = {
        "put": lambda value, start: kept.put(key, value, start),
        "get": lambda start: kept.fetch(key, start),
        "fetch": lambda low, high: kept.fetch(key, low, high),
        "bfetch": lambda low, high: kept.backward_fetch(key, low, high),
        "kfetch": kept.fetch,
        "bkfetch": kept.backward_fetch,
        "bfall": kept.backward_fetch_all,
        "ball": kept.backward_all,
        "fall": kept.fetch_all,
        "all": kept.all,
    }
    return commands[name](*arguments)


def _session(kept: Any, name: str, key: str, arguments: list[Any]) -> Any:
    def at(start: int, end: int) -> Windowed[str]:
        return Windowed(key, SessionWindow(start, end))

    commands: dict[str, Callable[..., Any]] = {
        "put": lambda value, start, end: kept.put(at(start, end), value),
        "rm": lambda start, end: kept.remove(at(start, end)),
        "get": lambda start, end: kept.fetch_session(key, start, end),
        "find": lambda low, high: kept.find_sessions(key, low, high),
        "bfind": lambda low, high: kept.backward_find_sessions(key, low, high),
        "kfind": kept.find_sessions,
        "bkfind": kept.backward_find_sessions,
        "fetch": lambda: kept.fetch(key),
        "bfetch": lambda: kept.backward_fetch(key),
        "kfetch": kept.fetch,
        "bkfetch": kept.backward_fetch,
    }
    return commands[name](*arguments)


def _versioned(kept: Any, name: str, key: str, arguments: list[Any]) -> Any:
    # Java's store returns numbers instead of None, and does not return the end of the validity.
    commands: dict[str, Callable[..., Any]] = {
        "put": lambda value, time: _valid_to(kept.put(key, value, time)),
        "del": lambda time: kept.delete(key, time),
        "get": lambda: kept.get(key),
        "asof": lambda time: kept.get_as_of(key, time),
    }
    return commands[name](*arguments)


def _valid_to(found: int | None) -> int:
    return -(1 << 63) if found is None else found


def _shown(found: Any) -> str:
    if isinstance(found, ValueAndTimestamp | VersionedRecord):
        return f"{text(found.value)}@{found.timestamp}"
    if hasattr(found, "__next__"):
        return "[" + "".join(f"{key}={_shown(value)};" for key, value in found) + "]"
    return text(found)
