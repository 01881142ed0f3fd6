"""Operators without state: each takes a record and forwards none, one or many."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.streams.processor import Processor
from ottla.streams.records import Record

AnyProcessor = Processor[Any, Any, Any, Any]
TwoArguments = Callable[[Any, Any], Any]


class _Stateless(AnyProcessor):
    """Hands each record, with the context's forward, to one function."""

    def __init__(self, step: Callable[[Record[Any, Any], Callable[..., None]], None]) -> None:
        self._step = step

    def process(self, record: Record[Any, Any]) -> None:
        self._step(record, self.context.forward)


@dataclass(frozen=True)
class Filter:
    """Keeps the records for which the predicate holds, or with `negate` the others."""

    predicate: TwoArguments
    negate: bool = False

    def __call__(self) -> AnyProcessor:
        """Make the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            if bool(self.predicate(record.key, record.value)) != self.negate:
                forward(record)

        return _Stateless(step)


def no_pair(made: Any) -> TypeError:
    """Return the error of a mapper that makes something else than a key and a value."""
    return TypeError(
        f"a mapper makes a pair, (key, value) or KeyValue.pair(key, value), not {made!r}"
    )


@dataclass(frozen=True)
class Map:
    """Makes one key and value of one key and value."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Make the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            made = self.mapper(record.key, record.value)
            try:
                key, value = made
            except (TypeError, ValueError):
                raise no_pair(made) from None
            forward(Record(key, value, record.timestamp, record.headers))

        return _Stateless(step)


@dataclass(frozen=True)
class SelectKey:
    """Gives each record a new key."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Make the processor."""
        return _Stateless(
            lambda record, forward: forward(
                record.with_key(self.mapper(record.key, record.value)),
            )
        )


@dataclass(frozen=True)
class MapValues:
    """Gives each record a new value."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Make the processor."""
        return _Stateless(
            lambda record, forward: forward(
                record.with_value(self.mapper(record.key, record.value)),
            )
        )


@dataclass(frozen=True)
class FlatMap:
    """Makes any number of keys and values of one key and value."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Make the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            for made in self.mapper(record.key, record.value) or ():
                try:
                    key, value = made
                except (TypeError, ValueError):
                    raise no_pair(made) from None
                forward(Record(key, value, record.timestamp, record.headers))

        return _Stateless(step)


@dataclass(frozen=True)
class FlatMapValues:
    """Makes any number of values of one value, all under its key."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Make the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            for value in self.mapper(record.key, record.value) or ():
                forward(record.with_value(value))

        return _Stateless(step)


@dataclass(frozen=True)
class Peek:
    """Shows each record to an action; with `ends` nothing comes after (foreach)."""

    action: TwoArguments
    ends: bool = False

    def __call__(self) -> AnyProcessor:
        """Make the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            self.action(record.key, record.value)
            if not self.ends:
                forward(record)

        return _Stateless(step)


@dataclass(frozen=True)
class Branch:
    """Sends each record to the first child whose predicate holds, or else to the default child."""

    predicates: tuple[TwoArguments, ...] = ()
    children: tuple[str, ...] = ()
    default_child: str | None = None

    def __call__(self) -> AnyProcessor:
        """Make the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            for predicate, child in zip(self.predicates, self.children, strict=True):
                if predicate(record.key, record.value):
                    forward(record, child)
                    return
            if self.default_child is not None:
                forward(record, self.default_child)

        return _Stateless(step)


@dataclass(frozen=True)
class PassThrough:
    """Forwards every record: where branches start and merged streams meet."""

    def __call__(self) -> AnyProcessor:
        """Make the processor."""
        return _Stateless(lambda record, forward: forward(record))


@dataclass(frozen=True)
class ToStream:
    """Makes a record of each change of a table: its new value."""

    def __call__(self) -> AnyProcessor:
        """Make the processor."""
        return _Stateless(
            lambda record, forward: forward(record.with_value(record.value.new_value))
        )
