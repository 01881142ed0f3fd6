"""Requests with many elements in parts, and one response of the responses to the parts. Pure.

A request is a tree: topics, and partitions in them. A part has the same fields, and some of the
leaves.
"""

from collections.abc import Callable, Hashable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from ottla.base.buffers import Buffer
from ottla.base.errors import ProtocolError
from ottla.server.transport.costs import Split
from ottla.wire.fields import Message, Struct
from ottla.wire.pieces import Pieces

# A pause is possible after so many elements that were only looked at.
_LOOKS = 2000
_EMPTY: Any = object()

Chain = tuple[Any, ...]


def parts_of(split: Split, request: Any) -> Iterator[Any]:
    """Yield requests with some of the leaves each, and None where a pause is possible."""
    if split.key is None:
        yield from _plain_parts(split, request)
        return
    key = _key_of(split.names, split.key)
    groups: dict[Hashable, list[Chain]] = {}
    for number, chain in enumerate(_chains(request, split.request, ())):
        groups.setdefault(key(chain), []).append(chain)
        if not number % _LOOKS:
            yield None
    some: list[Chain] = []
    for group in groups.values():
        chains = group[-2:] if split.once else group
        if some and len(some) + len(chains) > split.at_once:
            yield _part(split, request, some)
            some = []
        while len(chains) > split.at_once:
            # Each part has at least two of them.
            cut = split.at_once - (len(chains) == split.at_once + 1)
            yield _part(split, request, chains[:cut])
            chains = chains[cut:]
        some += chains
    if some:
        yield _part(split, request, some)


def _plain_parts(split: Split, request: Any) -> Iterator[Any]:
    some: list[Chain] = []
    for chain in _chains(request, split.request, ()):
        some.append(chain)
        if len(some) == split.at_once:
            yield _part(split, request, some)
            some = []
    if some:
        yield _part(split, request, some)


def _part(split: Split, request: Any, chains: list[Chain]) -> Any:
    """Return a request with some of the leaves."""
    lists, last = split.request, len(split.request) - 1
    part = _copy(request, lists[0])
    sources: list[Any] = [None] * last
    copies: list[Any] = [None] * last
    for chain in chains:
        parent = part
        for level, node in enumerate(chain):
            if level == last:
                if node is not _EMPTY:
                    getattr(parent, lists[level]).append(node)
                break
            if node is not sources[level]:
                sources[level:] = [node, *[None] * (last - level - 1)]
                is_empty = chain[level + 1] is _EMPTY
                copies[level] = _copy(node, None if is_empty else lists[level + 1])
                getattr(parent, lists[level]).append(copies[level])
            parent = copies[level]
            if chain[level + 1] is _EMPTY:
                break
    return part


def _chains(parent: Any, lists: tuple[str, ...], above: Chain) -> Iterator[Chain]:
    """Yield each leaf with the elements above it; an element without leaves is followed by _EMPTY."""
    items = getattr(parent, lists[0])
    if not items and above:
        yield (*above, _EMPTY)
        return
    if len(lists) == 1:
        for item in items:
            yield (*above, item)
        return
    for item in items:
        yield from _chains(item, lists[1:], (*above, item))


def _copy(source: Any, emptied: str | None) -> Any:
    """Return a shallow copy; the list `emptied` of the copy is a new one."""
    copy = object.__new__(type(source))
    for field in source.FIELDS:
        setattr(copy, field.name, getattr(source, field.name))
    if emptied is not None:
        setattr(copy, emptied, [])
    return copy


def _key_of(names: tuple[tuple[str, ...], ...], fields: tuple[str, ...]) -> Callable[[Chain], Any]:
    """Return the function from a chain to the key of its leaf."""
    outer = [attrgetter(*one) for one in names]
    own = attrgetter(*fields) if fields else None

    def key(chain: Chain) -> Any:
        leaf = chain[-1]
        found = leaf if own is None or leaf is _EMPTY else _hashable(own(leaf))
        if not outer:
            return found
        # There are fewer nodes than levels above an element without leaves.
        return (*(get(node) for get, node in zip(outer, chain[:-1], strict=False)), found)

    return key


def _hashable(value: Any) -> Any:
    """Return a value of a field as a key; a struct is compared by its fields."""
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    if isinstance(value, Struct):
        return tuple(_hashable(getattr(value, field.name)) for field in value.FIELDS)
    return value


class Merger:
    """Collects the responses to the parts of a request.

    Rows without children are encoded at once; others are merged by their names first.
    """

    def __init__(self, split: Split, response: type[Message], version: int, bytes_max: int) -> None:
        self._split = split
        self._bytes_max = bytes_max
        self._head: Any = None
        self._field = split.response[0]
        self._pieces = None
        if len(split.response) == 1:
            self._pieces = Pieces(response, version, self._field)
        self._rows: list[Any] = []
        self._merged: dict[Hashable, Any] = {}

    def add(self, response: Any) -> None:
        """Add a response; raises ProtocolError if all together are too large."""
        rows = getattr(response, self._field)
        setattr(response, self._field, [])
        if self._head is None:
            self._head = response
        else:
            self._add_to_head(response)
        if self._pieces is None:
            self._merge(rows, 0, (), self._rows)
            return
        self._pieces.add(rows)
        if self._pieces.size_bytes > self._bytes_max:
            raise ProtocolError(f"the response has more than {self._bytes_max} bytes")

    @property
    def size_bytes(self) -> int:
        """The encoded bytes so far."""
        return 0 if self._pieces is None else self._pieces.size_bytes

    def response(self) -> "LargeResponse | None":
        """Return the whole response; None if no part had a response."""
        if self._head is None:
            return None
        if self._pieces is None:
            setattr(self._head, self._field, self._rows)
        return LargeResponse(self._head, self._pieces)

    def _add_to_head(self, response: Any) -> None:
        _take_error(self._head, response)
        for field, key in self._split.also:
            known = getattr(self._head, field)
            keys = {getattr(one, key) for one in known}
            known += [one for one in getattr(response, field) if getattr(one, key) not in keys]

    def _merge(
        self, rows: list[Any], level: int, above: tuple[Hashable, ...], target: list[Any]
    ) -> None:
        """Add rows to the rows of `target`, which have the same names above."""
        children = self._split.response[level + 1]
        name = attrgetter(*self._split.names[level])
        has_leaves = level + 2 == len(self._split.response)
        for row in rows:
            key = (*above, name(row))
            below = getattr(row, children) or []
            known = self._merged.get(key)
            if known is None:
                known = self._merged[key] = row
                target.append(row)
                setattr(row, children, [])
            else:
                _take_error(known, row)
            if has_leaves:
                getattr(known, children).extend(below)
            else:
                self._merge(below, level + 1, key, getattr(known, children))


class LargeResponse(NamedTuple):
    """The response to a request that was divided; its rows may be encoded already."""

    head: Any
    pieces: Pieces | None

    def parts(self, header: bytes, encode: Callable[[Any, bytes], Any]) -> list[Buffer]:
        """Return header and response; `encode` is the encoder of its version."""
        if self.pieces is not None:
            return self.pieces.parts(self.head, header)
        encoded = encode(self.head, header)
        return encoded if isinstance(encoded, list) else [encoded]


def _take_error(known: Any, other: Any) -> None:
    """Let the first error of several rows for the same element count."""
    if getattr(other, "error_code", 0) and not known.error_code:
        known.error_code = other.error_code
        if hasattr(other, "error_message"):
            known.error_message = other.error_message
