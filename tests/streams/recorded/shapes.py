"""Topologies with parameters, for compare.py: the counterpart of Shapes.java.

The parameters are words in the scenario's line: `chain ops=fc3g source=table kept=5`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.streams import (
    BufferConfig,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    KTable,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from tests.streams.recorded.topologies import foreign_key, from_in, grouped, out
from tests.streams.recorded.topologies import pair as show_pair

TEXT = Serdes.string()


class Given:
    """The parameters of a scenario."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def get(self, name: str, otherwise: str = "") -> str:
        """Return a parameter, or `otherwise`."""
        return self._words.get(name, otherwise)

    def number(self, name: str, otherwise: int = 0) -> int:
        """Return a parameter as a number."""
        return int(self._words.get(name, otherwise))

    def time_windows(self) -> TimeWindows:
        """Return tumbling or hopping windows."""
        windows = TimeWindows.of_size_and_grace(self.number("size", 10), self.number("grace"))
        return windows.advance_by(self.number("advance", self.number("size", 10)))

    def sliding_windows(self) -> SlidingWindows:
        """Return sliding windows."""
        return SlidingWindows.of_time_difference_and_grace(
            self.number("size", 10), self.number("grace")
        )

    def session_windows(self) -> SessionWindows:
        """Return session windows."""
        return SessionWindows.of_inactivity_gap_and_grace(
            self.number("size", 10), self.number("grace")
        )

    def join_windows(self) -> JoinWindows:
        """Return the windows of a join."""
        size = self.number("size", 10)
        windows = JoinWindows.of_time_difference_and_grace(size, self.number("grace"))
        return windows.before(self.number("before", size)).after(self.number("after", size))

    def emitted(self) -> EmitStrategy:
        """Return the emit strategy of windows."""
        is_on_close = self.get("close") == "1"
        return EmitStrategy.on_window_close() if is_on_close else EmitStrategy.on_window_update()

    def kept(self, name: str) -> Materialized[Any, Any]:
        """Return the name of a store, with its retention if that is a parameter."""
        remaining = Materialized.as_(name)
        return (
            remaining.with_retention(self.number("retention"))
            if self.get("retention")
            else remaining
        )


def first(value: str | None) -> str | None:
    """Return the first letter."""
    return value[0] if value else None


def last(value: str) -> str:
    """Return a value of limited length."""
    return value[-12:]


def text(value: Any) -> str:
    """Format a value like Java's string concatenation."""
    return "null" if value is None else str(value)


def append(_key: Any, value: Any, total: Any) -> str | None:
    """Add a value to an aggregate; one value deletes it."""
    return None if value == "x" else last(f"{text(total)}.{text(value)}")


def reduced(one: Any, two: Any) -> str | None:
    """Reduce two values to one; one value deletes it."""
    return None if two == "x" else last(f"{text(one)}.{text(two)}")


def merged(_key: Any, one: Any, two: Any) -> str:
    """Merge two aggregates."""
    return last(text(one) + text(two))


def pair(left: Any, right: Any) -> str | None:
    """Join two values; the right value "x" yields None."""
    return None if right == "x" else last(f"{text(left)}+{text(right)}")


def plus(_key: Any, value: Any, total: Any) -> str:
    """Add an entry to a group."""
    return last(f"{text(total)}+{text(value)}")


def minus(_key: Any, value: Any, total: Any) -> str:
    """Remove an entry from a group."""
    return last(f"{text(total)}-{text(value)}")


def _folded(inputs: Given, stream: Any, *merger: Any) -> Any:
    stream = stream.emit_strategy(inputs.emitted())
    if inputs.get("fold") == "count":
        return stream.count(inputs.kept("kept"))
    if inputs.get("fold") == "reduce":
        return stream.reduce(reduced, inputs.kept("kept"))
    return stream.aggregate(str, append, *merger, inputs.kept("kept"))


def _windows(b: StreamsBuilder, inputs: Given) -> None:
    group = from_in(b).group_by_key()
    if inputs.get("kind") == "session":
        table = _folded(inputs, group.windowed_by(inputs.session_windows()), merged)
    elif inputs.get("kind") == "sliding":
        table = _folded(inputs, group.windowed_by(inputs.sliding_windows()))
    elif inputs.get("kind") == "unlimited":
        windows = UnlimitedWindows.of().start_on(inputs.number("size", 10))
        table = _folded(inputs, group.windowed_by(windows))
    else:
        table = _folded(inputs, group.windowed_by(inputs.time_windows()))
    then = inputs.get("then")
    if then == "suppress":
        table = table.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    texts = table.map_values(str)
    if then == "limit":
        room = BufferConfig.max_records(2)
        out(table.suppress(Suppressed.until_time_limit(inputs.number("wait", 5), room)))
    elif then == "filter":
        out(texts.filter(lambda v: "b" not in v and v != "2"))
    elif then == "group":
        group_ = texts.group_by(lambda k, v: (str(k)[1], v), Grouped.with_(TEXT, TEXT))
        out(group_.aggregate(str, plus, minus, Materialized.with_(TEXT, TEXT)))
    else:
        out(table)


def _window_tables(b: StreamsBuilder, inputs: Given) -> None:
    left = _window_table(inputs, grouped(b), "left")
    right = _window_table(inputs, b.stream("other").group_by_key(), "right")
    if inputs.get("filter") == "1":
        left = left.filter(lambda v: not v.endswith("b"))
    if inputs.get("then") == "suppress":
        right = right.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    out(_how(inputs, left)(right, pair))


def _window_table(inputs: Given, group: Any, name: str) -> Any:
    remaining = inputs.kept(name)
    if inputs.get("kind") == "session":
        return group.windowed_by(inputs.session_windows()).aggregate(str, append, merged, remaining)
    is_sliding = inputs.get("kind") == "sliding"
    windows: Any = inputs.sliding_windows() if is_sliding else inputs.time_windows()
    return group.windowed_by(windows).aggregate(str, append, remaining)


def _cogroups(b: StreamsBuilder, inputs: Given) -> None:
    def other(_key: Any, value: Any, total: Any) -> str | None:
        return None if value == "x" else last(f"{text(total)}/{text(value)}")

    first_of = grouped(b).cogroup(append)
    both = first_of.cogroup(b.stream("other").group_by(lambda k, v: k), other)
    remaining = inputs.kept("kept")
    if inputs.get("kind") == "session":
        out(both.windowed_by(inputs.session_windows()).aggregate(str, merged, remaining))
    elif inputs.get("kind") == "sliding":
        out(both.windowed_by(inputs.sliding_windows()).aggregate(str, materialized=remaining))
    elif inputs.get("kind") == "time":
        out(both.windowed_by(inputs.time_windows()).aggregate(str, materialized=remaining))
    else:
        out(both.aggregate(str, materialized=remaining))


def _how(inputs: Given, left: Any) -> Callable[..., Any]:
    """Return the method of the given kind of join."""
    kinds = {"left": left.left_join, "outer": getattr(left, "outer_join", None)}
    result: Callable[..., Any] = kinds.get(inputs.get("how"), left.join)
    return result


def _stream_joins(b: StreamsBuilder, inputs: Given) -> None:
    left, right = from_in(b), b.stream("other")
    both = _how(inputs, left)(right, show_pair, inputs.join_windows())
    if inputs.get("then") == "count":
        out(both.group_by_key().windowed_by(inputs.time_windows()).count())
    elif inputs.get("then") == "join":
        both.outer_join(b.stream("third"), show_pair, inputs.join_windows()).to("out")
    else:
        both.to("out")


def table_of(b: StreamsBuilder, inputs: Given, topic: str) -> KTable[Any, Any]:
    """Return the table of a topic, of the given type."""
    kind = inputs.get(topic)
    if kind == "versioned":
        store = Stores.versioned(f"{topic}-kept", inputs.number("history", 10))
        return b.table(topic, materialized=Materialized.as_(store))
    if kind == "filtered":
        return b.table(topic).filter(lambda v: v != "b")
    if kind == "folded":
        return b.stream(topic).group_by_key().aggregate(str, append)
    if kind == "mapped":
        return b.table(topic).map_values(lambda v: f"{v}'", f"{topic}-kept")
    return b.table(topic)


def _stream_tables(b: StreamsBuilder, inputs: Given) -> None:
    joined: Joined[Any, Any] = Joined()
    if inputs.get("wait"):
        joined = joined.with_grace_period(inputs.number("wait"))
    stream, table = None, table_of(b, inputs, "other")
    stream = from_in(b)
    _how(inputs, stream)(table, show_pair, joined).to("out")


def _global_joins(b: StreamsBuilder, inputs: Given) -> None:
    table = b.global_table("other", materialized="all")

    def key(key: Any, value: Any) -> Any:
        if inputs.get("key") == "value":
            return None if value == "x" else value
        return key

    _how(inputs, from_in(b))(table, key, show_pair).to("out")


def _table_joins(b: StreamsBuilder, inputs: Given) -> None:
    remaining: Any = {"1": "kept", "": None}.get(inputs.get("kept"), "")
    if remaining == "":
        remaining = Materialized.as_(Stores.versioned("kept", inputs.number("history", 10)))
    left, right = table_of(b, inputs, "in"), table_of(b, inputs, "other")
    functions = [foreign_key, pair] if inputs.get("by") == "foreign" else [pair]
    both = _how(inputs, left)(right, *functions, materialized=remaining)
    then = inputs.get("then")
    if then == "filter":
        out(both.filter(lambda v: "c" not in v))
    elif then == "group":
        out(both.group_by(lambda v: (first(v), v)).aggregate(str, plus, minus))
    elif then == "join":
        out(both.outer_join(b.table("third"), pair))
    else:
        out(both)


def _suppresses(b: StreamsBuilder, inputs: Given) -> None:
    table = table_of(b, inputs, "in")
    room = BufferConfig.max_bytes(inputs.number("bytes", 1_000_000))
    if inputs.get("records"):
        room = BufferConfig.max_records(inputs.number("records"))
    if inputs.get("full") == "1":
        room = room.shut_down_when_full()
    waiting = table.suppress(Suppressed.until_time_limit(inputs.number("wait", 5), room))
    if inputs.get("then") == "group":
        out(waiting.group_by(lambda v: (first(v), v)).count())
    elif inputs.get("then") == "join":
        out(waiting.left_join(b.table("other"), pair))
    else:
        out(waiting)


SHAPES: dict[str, Callable[[StreamsBuilder, Given], None]] = {
    "windows": _windows,
    "window_tables": _window_tables,
    "cogroups": _cogroups,
    "stream_joins": _stream_joins,
    "stream_tables": _stream_tables,
    "global_joins": _global_joins,
    "table_joins": _table_joins,
    "suppresses": _suppresses,
}
