"""Views: the access of one operator to another one's table, through its store or its parent's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ottla.streams.model.records import Change, Record, ValueAndTimestamp
from ottla.streams.processor.api import ProcessorContext
from ottla.streams.stores.builders import StoreBuilder

TimestampedValue = ValueAndTimestamp[Any]


class Getter(Protocol):
    """Read access to a table by key (Kafka's KTableValueGetter)."""

    versioned: bool

    def get(self, key: Any) -> TimestampedValue | None:
        """Return the table's current value."""

    def get_forwarded(self, key: Any) -> TimestampedValue | None:
        """Return the value of the last change that the table's readers got.

        It differs from the current value if a cache has not forwarded the latest change yet.
        """


@dataclass(frozen=True)
class View:
    """The stores that a reader of a table must be connected to, and the function that opens its
    getter.
    """

    stores: tuple[str, ...]
    open: Callable[[ProcessorContext], Getter]


class OptionallyStored:
    """The base of table operators that store their result only if it is needed."""

    store: StoreBuilder | None

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the store of the result, if it has one."""
        return () if self.store is None else (self.store,)


@dataclass
class FunctionGetter:
    """A getter that calls functions."""

    get: Callable[[Any], TimestampedValue | None]
    get_forwarded: Callable[[Any], TimestampedValue | None]
    versioned: bool = False
    get_as_of: Callable[[Any, int], TimestampedValue | None] | None = None
    """Returns the table's value at a time; None if the table is not versioned."""


def derived_getter(
    above: Any, derive: Callable[[Any, TimestampedValue | None], TimestampedValue | None]
) -> Getter:
    """Return the getter of a table derived from another one; it is versioned if the other one is."""

    def get(key: Any) -> TimestampedValue | None:
        return derive(key, above.get(key))

    def get_forwarded(key: Any) -> TimestampedValue | None:
        return derive(key, above.get_forwarded(key))

    def get_as_of(key: Any, as_of: int) -> TimestampedValue | None:
        return derive(key, above.get_as_of(key, as_of))

    if above.versioned:
        return FunctionGetter(get, get_forwarded, True, get_as_of)
    return FunctionGetter(get, get_forwarded)


def store_view(name: str) -> View:
    """Return the view of a table with a store; a table's store is itself a getter."""
    return View((name,), lambda context: context.store(name))


def global_view(name: str) -> View:
    """Return the view of a global table; all processors can access its store."""
    return View((), lambda context: context.store(name))


def window_view(name: str) -> View:
    """Return the view of a table of time windows."""

    def open_store(context: ProcessorContext) -> Getter:
        store = context.store(name)
        return FunctionGetter(
            lambda windowed: store.fetch(windowed.key, windowed.window.start),
            lambda windowed: store.fetch_forwarded(windowed.key, windowed.window.start),
        )

    return View((name,), open_store)


def session_view(name: str) -> View:
    """Return the view of a table of sessions; the timestamp of a session's value is its end."""

    def open_store(context: ProcessorContext) -> Getter:
        store = context.store(name)

        def reading(fetch: Callable[..., Any]) -> Callable[[Any], TimestampedValue | None]:
            def get(windowed: Any) -> TimestampedValue | None:
                value = fetch(windowed.key, *windowed.window)
                return None if value is None else ValueAndTimestamp(value, windowed.window.end)

            return get

        return FunctionGetter(reading(store.fetch_session), reading(store.fetch_forwarded))

    return View((name,), open_store)


def mapped_view(
    parent: View, change: Callable[[Any, TimestampedValue], TimestampedValue | None]
) -> View:
    """Return the view of a table that maps another one entry by entry."""

    def derive(key: Any, entry: TimestampedValue | None) -> TimestampedValue | None:
        return None if entry is None else change(key, entry)

    def open_parent(context: ProcessorContext) -> Getter:
        return derived_getter(parent.open(context), derive)

    return View(parent.stores, open_parent)


OUT_OF_ORDER = "due to out-of-order update of a versioned table"
"""The reason for which a join drops a change that is not the latest of its key."""


def forward_change(
    context: ProcessorContext,
    record: Record[Any, Any],
    change: Change[Any],
    send_old_values: bool,
) -> None:
    """Forward a table's change; the old value is included only if it is needed downstream."""
    if change.old_value is not None and not send_old_values:
        change = Change(change.new_value, None, change.is_latest)
    context.forward(record.with_value(change))
