"""Operators of tables that keep the types of key and value; `KTable` has them all."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from ottla.streams.building import tables
from ottla.streams.building.flows import TableFlow
from ottla.streams.durations import Duration
from ottla.streams.operators.views import View
from ottla.streams.options import (
    BufferConfig,
    Kept,
    Materialized,
    Name,
    Of1Or2,
    Suppressed,
    name_of,
)
from ottla.streams.spelling import SnakeCase

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class GlobalKTable(Generic[K, V]):
    """A table of which every task holds all partitions; streams join it by any key."""

    view: View
    store_name: str


class TableOperators(SnakeCase, Generic[K, V]):
    """What a table can do and stay a table of the same keys and values."""

    def __init__(self, flow: TableFlow) -> None:
        self.flow = flow

    @property
    def queryable_store_name(self) -> str | None:
        """The name under which its store can be asked; None if it has none."""
        return self.flow.store_name

    def filter(
        self, predicate: Of1Or2[Any], materialized: Kept = None, *, named: Name = None
    ) -> Self:
        """Keep the entries for which the predicate holds."""
        kept = Materialized.asked(materialized)
        return type(self)(tables.filter_table(self.flow, predicate, False, name_of(named), kept))

    def filter_not(
        self, predicate: Of1Or2[Any], materialized: Kept = None, *, named: Name = None
    ) -> Self:
        """Drop the entries for which the predicate holds."""
        kept = Materialized.asked(materialized)
        return type(self)(tables.filter_table(self.flow, predicate, True, name_of(named), kept))

    def suppress(
        self,
        suppressed: Suppressed | str,
        *,
        buffer: BufferConfig | None = None,
        idle_timeout: Duration | None = None,
        on_late: Callable[[Any], None] | None = None,
        named: Name = None,
    ) -> Self:
        """Let changes wait; `"until_window_closes"` lets only final results of windows through.

        Once no record came for `idle_timeout` of wall-clock time, the stream's time goes on with the wall clock
        and windows close; `on_late` is told of changes that come for them later, which are dropped.
        """
        if isinstance(suppressed, str):
            if suppressed != "until_window_closes":
                raise ValueError(f"not a way to suppress: {suppressed!r}")
            suppressed = Suppressed.until_window_closes(buffer)
        if idle_timeout is not None:
            suppressed = suppressed.with_idle_timeout(idle_timeout, on_late)
        if named is not None:
            suppressed = replace(suppressed, name=name_of(named))
        return type(self)(tables.suppress(self.flow, suppressed))
