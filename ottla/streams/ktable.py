"""Operators of tables that keep the types of key and value; `KTable` has them all."""

from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from ottla.streams.building import tables
from ottla.streams.building.flows import TableFlow
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

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class GlobalKTable(Generic[K, V]):
    """A table of which every task holds all partitions; streams join it by any key."""

    view: View
    store_name: str


class TableOperators(Generic[K, V]):
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
        named: Name = None,
    ) -> Self:
        """Let changes wait; `"until_window_closes"` lets only final results of windows through."""
        if isinstance(suppressed, str):
            if suppressed != "until_window_closes":
                raise ValueError(f"not a way to suppress: {suppressed!r}")
            suppressed = Suppressed.until_window_closes(buffer)
        if named is not None:
            suppressed = replace(suppressed, name=name_of(named))
        return type(self)(tables.suppress(self.flow, suppressed))
