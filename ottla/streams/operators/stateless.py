"""Stateless operators: each processes a record and forwards none, one or several."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ottla.streams.model.records import Record
from ottla.streams.processor.api import Processor

AnyProcessor = Processor[Any, Any, Any, Any]
TwoArguments = Callable[[Any, Any], Any]


class _Stateless(AnyProcessor):
    """A processor that calls one function with each record and the context's forward."""

    def __init__(self, step: Callable[[Record[Any, Any], Callable[..., None]], None]) -> None:
        self._step = step

    def process(self, record: Record[Any, Any]) -> None:
        self._step(record, self.context.forward)


@dataclass(frozen=True)
class Filter:
    """Forwards the records that match the predicate, or with `negate` those that do not."""

    predicate: TwoArguments
    negate: bool = False

    def __call__(self) -> AnyProcessor:
        """Create the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            if bool(self.predicate(record.key, record.value)) != self.negate:
                forward(record)

        return _Stateless(step)


# Python would unpack these to a key and a value without an error: a string of two letters, a
# dictionary of two entries.
_NO_PAIRS = (str, bytes, bytearray, dict, set, frozenset)


def no_pair(result: Any) -> TypeError:
    """Return the error for a mapper whose result is not a key and a value."""
    return TypeError(
        f"a mapper must return a pair, (key, value) or KeyValue.pair(key, value), not {result!r}; "
        "use map_values or select_key to return only a value or a key"
    )


def pair_of(result: Any) -> tuple[Any, Any]:
    """Return the key and the value in a mapper's result; TypeError if it is not a pair."""
    # Called for every record: most mappers return tuples.
    if type(result) is not tuple and isinstance(result, _NO_PAIRS):
        raise no_pair(result)
    try:
        key, value = result
    except (TypeError, ValueError):
        raise no_pair(result) from None
    return key, value


def several(result: Any, subject: str) -> Iterable[Any]:
    """Return a flat mapper's results, empty for None and False; TypeError if they are not iterable."""
    if not result:
        return ()
    try:
        records: Iterable[Any] = result if type(result) is list else iter(result)
        return records
    except TypeError:
        raise TypeError(f"a mapper of {subject}, not {result!r}") from None


MANY_PAIRS = "flat_map must return a list of pairs (key, value), empty for none"
MANY_VALUES = "flat_map_values must return a list of values, empty for none"


@dataclass(frozen=True)
class KeyFilter:
    """Drops and counts records without a key, for which a repartition topic has no partition."""

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _KeyFilterProcessor()


class _KeyFilterProcessor(AnyProcessor):
    def process(self, record: Record[Any, Any]) -> None:
        if record.key is None:
            self.context.skip(NULL_KEY)
        else:
            self.context.forward(record)


NULL_KEY = "due to null key"
"""The reason for dropping a record without a key."""


@dataclass(frozen=True)
class Map:
    """Maps key and value to a new key and value."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Create the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            result = self.mapper(record.key, record.value)
            if type(result) is not tuple:
                result = pair_of(result)
            try:
                key, value = result
            except ValueError:
                raise no_pair(result) from None
            forward(Record(key, value, record.timestamp, record.headers))

        return _Stateless(step)


@dataclass(frozen=True)
class SelectKey:
    """Sets a new key for each record."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _Stateless(
            lambda record, forward: forward(
                record.with_key(self.mapper(record.key, record.value)),
            )
        )


@dataclass(frozen=True)
class MapValues:
    """Maps each value to a new value."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _Stateless(
            lambda record, forward: forward(
                record.with_value(self.mapper(record.key, record.value)),
            )
        )


@dataclass(frozen=True)
class FlatMap:
    """Maps key and value to any number of new keys and values."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Create the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            for result in several(self.mapper(record.key, record.value), MANY_PAIRS):
                if type(result) is not tuple:
                    result = pair_of(result)
                try:
                    key, value = result
                except ValueError:
                    raise no_pair(result) from None
                forward(Record(key, value, record.timestamp, record.headers))

        return _Stateless(step)


@dataclass(frozen=True)
class FlatMapValues:
    """Maps each value to any number of values with the same key."""

    mapper: TwoArguments

    def __call__(self) -> AnyProcessor:
        """Create the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            for value in several(self.mapper(record.key, record.value), MANY_VALUES):
                forward(record.with_value(value))

        return _Stateless(step)


@dataclass(frozen=True)
class Peek:
    """Calls an action for each record; with `ends` nothing is forwarded (foreach)."""

    action: TwoArguments
    ends: bool = False

    def __call__(self) -> AnyProcessor:
        """Create the processor."""

        def step(record: Record[Any, Any], forward: Callable[..., None]) -> None:
            self.action(record.key, record.value)
            if not self.ends:
                forward(record)

        return _Stateless(step)


@dataclass(frozen=True)
class Branch:
    """Forwards each record to the first child whose predicate matches, or else to the default
    child.
    """

    predicates: tuple[TwoArguments, ...] = ()
    children: tuple[str, ...] = ()
    default_child: str | None = None

    def __call__(self) -> AnyProcessor:
        """Create the processor."""

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
    """Forwards every record: used at the start of branches and for merged streams."""

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _Stateless(lambda record, forward: forward(record))


@dataclass(frozen=True)
class ToStream:
    """Converts each change of a table to a record with the new value."""

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _Stateless(
            lambda record, forward: forward(record.with_value(record.value.new_value))
        )
