"""State pages: the ordered maps of a task's stores, split into pages that one of Spark's states
stores.

Each call of Spark's state from Python costs as much as ten records. A map is therefore split, in
key order, into pages of some hundred entries. A page is read when a micro-batch first needs it,
changed in memory, and written once at the end. This module does not use Spark: `PageStore` is the
port.

A map of one page has no directory. A larger map stores the first key of each page in an entry of
its own.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Protocol

from ottla.streams.model.packing import pack, unpack
from ottla.streams.stores.ordered import OrderedBytes

# A page with more entries is split in two. A page with more bytes is split when it is written.
MAX_ENTRIES = 512
MAX_BYTES = 64 * 1024


class PageStore(Protocol):
    """Stores pages by name, for one task; a page that is put can be read in the next micro-batch."""

    def get(self, name: str) -> bytes | None:
        """Return a page; None if it does not exist."""

    def put(self, name: str, page: bytes) -> None:
        """Store a page."""

    def remove(self, name: str) -> None:
        """Remove a page if it exists."""


class _Page:
    """Some hundred entries in key order."""

    __slots__ = ("in_order", "is_changed", "keys", "values")

    def __init__(self, values: dict[bytes, bytes]) -> None:
        # A stored page is in key order. Later insertions may break the order of `values`.
        self.values = values
        self.keys = list(values)
        self.in_order = True
        self.is_changed = False

    def entries(self, low: bytes | None, high: bytes | None) -> list[tuple[bytes, bytes]]:
        keys, values = self.keys, self.values
        first = 0 if low is None else bisect_left(keys, low)
        # `key + b"\0"` is the immediate successor of a key.
        last = len(keys) if high is None else bisect_left(keys, high + b"\0", first)
        return [(key, values[key]) for key in keys[first:last]]

    def cut(self, at: int) -> "_Page":
        """Remove the entries from an index on, and return them as a new page."""
        tail = _Page({key: self.values.pop(key) for key in self.keys[at:]})
        del self.keys[at:]
        self.is_changed = tail.is_changed = True
        return tail

    def cut_by_bytes(self) -> Iterator["_Page"]:
        """Remove the entries beyond MAX_BYTES, and return them as pages within the limit."""
        if sum(map(len, self.keys)) + sum(map(len, self.values.values())) <= MAX_BYTES:
            return
        sizes = [len(key) + len(self.values[key]) for key in self.keys]
        boundaries, size = [], 0
        for index, entry_bytes in enumerate(sizes):
            if size and size + entry_bytes > MAX_BYTES // 2:
                boundaries.append(index)
                size = 0
            size += entry_bytes
        for index in reversed(boundaries):
            yield self.cut(index)

    def stored(self) -> bytes:
        values = self.values
        return pack(values if self.in_order else {key: values[key] for key in self.keys})


class PagedBytes:
    """An ordered map of bytes, stored in pages; `flush` writes the changed ones."""

    def __init__(self, name: str, pages: PageStore, count: int, is_cut: bool) -> None:
        self._name = name
        self._pages = pages
        self._count = count
        self._directory_changed = False
        # For each page: its first possible key (the first page has no lower bound), its number, and
        # the page itself once it is read.
        self._lows: list[bytes] = [b""]
        self._numbers: list[int] = [0]
        if is_cut:
            directory = pages.get(self._page_name(None))
            assert directory is not None, f"the directory of {name} is missing"
            self._lows, self._numbers = unpack(directory)
        self._read: list[_Page | None] = [None] * len(self._numbers)
        self._next_number = max(self._numbers) + 1

    @property
    def size(self) -> tuple[int, bool]:
        """The number of entries, and True if they are on more than one page."""
        return self._count, self._numbers != [0]

    def _page_name(self, number: int | None) -> str:
        """Return the name of a page, or of the directory."""
        return f"{self._name}#" if number is None else f"{self._name}#{number}"

    def _page(self, index: int) -> _Page:
        page = self._read[index]
        if page is None:
            stored = None
            if self._count:
                stored = self._pages.get(self._page_name(self._numbers[index]))
            page = self._read[index] = _Page({} if stored is None else unpack(stored))
        return page

    def _index_of(self, key: bytes) -> int:
        return bisect_right(self._lows, key) - 1

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if the key has no value."""
        index = bisect_right(self._lows, key) - 1
        page = self._read[index]
        if page is None:
            page = self._page(index)
        return page.values.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key; None removes it."""
        index = bisect_right(self._lows, key) - 1
        page = self._read[index]
        if page is None:
            page = self._page(index)
        if value is None:
            if page.values.pop(key, None) is not None:
                del page.keys[bisect_left(page.keys, key)]
                self._count -= 1
                page.is_changed = True
            return
        is_new = key not in page.values
        page.values[key] = value
        page.is_changed = True
        if is_new:
            self._count += 1
            insort(page.keys, key)
            page.in_order = page.in_order and page.keys[-1] == key
            if len(page.keys) > MAX_ENTRIES:
                # Keys that arrive in order leave full pages behind.
                last = len(page.keys) - 1
                self._insert(index + 1, page.cut(last if page.keys[last] == key else last // 2))

    def _insert(self, index: int, page: _Page) -> None:
        self._lows.insert(index, page.keys[0])
        self._numbers.insert(index, self._next_number)
        self._read.insert(index, page)
        self._next_number += 1
        self._directory_changed = True

    def scan(
        self, low: bytes | None = None, high: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the keys from `low` to `high`, both included, as of the call."""
        first = 0 if low is None else self._index_of(low)
        last = len(self._lows) if high is None else self._index_of(high) + 1
        results: list[tuple[bytes, bytes]] = []
        for index in range(first, last):
            results += self._page(index).entries(low, high)
        return reversed(results) if reverse else iter(results)

    def walk(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all keys; changes made during the iteration may or may not be seen."""
        index = 0
        while index < len(self._lows):
            yield from self._page(index).entries(None, None)
            index += 1

    def first(self) -> tuple[bytes, bytes] | None:
        """Return the first key and its value; None if the store is empty."""
        for index in range(len(self._lows) if self._count else 0):
            page = self._page(index)
            if page.keys:
                return page.keys[0], page.values[page.keys[0]]
        return None

    def clear(self) -> None:
        """Remove all keys."""
        for number in self._numbers:
            self._pages.remove(self._page_name(number))
        self._directory_changed = self._directory_changed or len(self._numbers) > 1
        self._count, self._lows, self._numbers = 0, [b""], [0]
        self._read = [None]

    def __len__(self) -> int:
        """Return the number of keys."""
        return self._count

    def flush(self) -> None:
        """Write the changed pages; split those with too many bytes, and remove empty ones."""
        # Backwards, so that insertions and removals only move pages that are written already.
        for index in range(len(self._read) - 1, -1, -1):
            page = self._read[index]
            if page is None or not page.is_changed:
                continue
            for part in page.cut_by_bytes():
                self._insert(index + 1, part)
                self._pages.put(self._page_name(self._numbers[index + 1]), part.stored())
            self._write(index, page)
        if not self._directory_changed:
            return
        name = self._page_name(None)
        if self._numbers == [0]:
            self._pages.remove(name)
        else:
            self._pages.put(name, pack((self._lows, self._numbers)))

    def _write(self, index: int, page: _Page) -> None:
        name = self._page_name(self._numbers[index])
        if page.keys:
            self._pages.put(name, page.stored())
            return
        self._pages.remove(name)
        if index:
            # The page before now covers the key range of this one.
            del self._lows[index], self._numbers[index], self._read[index]
            self._directory_changed = True


Sizes = dict[str, tuple[int, bool]]


class PagedMaps:
    """The maps of one task: opens them by name, and writes all of them at the end of a micro-batch.

    `sizes` is the last result of `flush`; a map that is not in it is empty and has no pages.
    """

    def __init__(self, pages: PageStore, sizes: Sizes) -> None:
        self._pages = pages
        self._sizes = sizes
        self._open: dict[str, PagedBytes] = {}

    def open_map(self, name: str) -> OrderedBytes:
        """Open a map (an OpenMap)."""
        if name not in self._open:
            size = self._sizes.get(name, (0, False))
            self._open[name] = PagedBytes(name, self._pages, *size)
        return self._open[name]

    def flush(self) -> Sizes:
        """Write the changed pages; return the sizes for the next micro-batch."""
        for open_map in self._open.values():
            open_map.flush()
        sizes = self._sizes | {name: open_map.size for name, open_map in self._open.items()}
        return {name: size for name, size in sizes.items() if size != (0, False)}
