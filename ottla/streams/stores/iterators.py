"""The iterator that range queries of stores return, like Kafka's KeyValueIterator."""

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

from ottla.streams.model.records import KeyValue

K = TypeVar("K")
V = TypeVar("V")

_NOTHING: Any = object()


class KeyValueIterator(Iterator[KeyValue[K, V]], Generic[K, V]):
    """An iterator over KeyValue entries; for windows of one key, the key is the window start in ms.

    It need not be closed: its entries were read when it was created.
    """

    def __init__(self, entries: Iterable[tuple[K, V]]) -> None:
        self._entries: Iterator[KeyValue[K, V]] = map(KeyValue._make, entries)
        self._ahead: KeyValue[K, V] = _NOTHING

    def __iter__(self) -> "KeyValueIterator[K, V]":
        return self

    def __next__(self) -> KeyValue[K, V]:
        if self._ahead is _NOTHING:
            return next(self._entries)
        result, self._ahead = self._ahead, _NOTHING
        return result

    def next(self) -> KeyValue[K, V]:
        """Return the next entry; StopIteration at the end."""
        return next(self)

    def has_next(self) -> bool:
        """Return True if there is another entry."""
        if self._ahead is _NOTHING:
            self._ahead = next(self._entries, _NOTHING)
        return self._ahead is not _NOTHING

    def peek_next_key(self) -> K:
        """Return the key of the next entry without consuming it; StopIteration at the end."""
        if not self.has_next():
            raise StopIteration
        return self._ahead.key

    def close(self) -> None:
        """End the iteration: no further entries are returned."""
        self._entries, self._ahead = iter(()), _NOTHING

    def __enter__(self) -> "KeyValueIterator[K, V]":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
