"""Random topologies of Column expressions, and records for them, many of which are invalid."""

import json
import math
import random
import struct
from dataclasses import dataclass, field
from typing import Any

from ottla.streams import Serdes, StreamsBuilder
from ottla.streams.expressions.columns import Column, coalesce, col, lit, when
from ottla.streams.expressions.columns import struct as struct_of
from ottla.streams.model.raw import TopicRecord
from ottla.streams.serdes import Serde


@dataclass
class Place:
    """An object inside another one."""

    city: str
    height: float


@dataclass
class Order:
    """A class for JSON values."""

    i: int
    j: int
    x: float
    s: str
    b: bool
    place: Place
    other: Place | None
    t: str | None = None
    names: list[str] | None = None
    marks: dict[str, int] = field(default_factory=dict)
    rest: Any = None


SERDES: dict[str, Serde[Any]] = {
    "text": Serdes.string(),
    "bytes": Serdes.bytes(),
    "integer": Serdes.integer(),
    "long": Serdes.long(),
    "double": Serdes.double(),
    "json": Serdes.json(Order),
}
_PLAIN: Serde[Any] = Serdes.json()
_TEXTS = ("", "a", "b", "ab", " aZ ", "ß", "é😀", "x" * 30, "\x00", '"\\', "\u2028")
_INTS = (
    0,
    1,
    -1,
    7,
    -9,
    1 << 31,
    (1 << 31) - 1,
    -(1 << 31),
    (1 << 53) + 1,
    (1 << 63) - 1,
    -(1 << 63),
)
_FLOATS = (0.0, -0.0, 1.5, -2.25, 0.1, 1e300, 5e-324, 1e22, math.inf, -math.inf, math.nan)
# Valid and invalid values for the fields of a class.
_ODD: tuple[Any, ...] = (None, True, 3, 2.0, "7", [], {}, [1], {"city": 1})
_BROKEN = (
    b"",
    b"{",
    b"null",
    b"[]",
    b'{"i":1} x',
    b'{"i":1}{"j":2}',
    b'{"i":01}',
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xef\xbb\xbf{}",
    b"NaN",
    b"1,2",
    b"1],[2",
)


def _order(chance: random.Random) -> dict[str, Any]:
    labels = {"city": chance.choice(_TEXTS), "height": chance.choice((1.5, -0.0, 1e300, 0.1, 1e-7))}
    entries: dict[str, Any] = {
        "i": chance.choice(_INTS),
        "j": chance.choice(_INTS),
        "x": chance.choice((0.0, -0.0, 1.5, 2.0, 0.1, 1e300, 123456.789, 1e16)),
        "s": chance.choice(_TEXTS),
        "b": chance.random() < 0.5,
        "place": labels,
        "other": None if chance.random() < 0.5 else labels,
        "t": chance.choice((None, "t", "é")),
        "names": chance.choice((None, [], ["a"])),
        "marks": chance.choice(({}, {"a": 1}, {}, {}, None, "x")),
        "rest": chance.choice(_ODD),
    }
    if chance.random() < 0.2:
        entries[chance.choice(list(entries))] = chance.choice(_ODD)
    if chance.random() < 0.1:
        del entries[chance.choice(list(entries))]
    if chance.random() < 0.2:
        entries["more"] = chance.choice(_ODD)
    return entries


def _json(chance: random.Random) -> bytes:
    order = _order(chance)
    text = json.dumps(
        order,
        ensure_ascii=chance.random() < 0.5,
        indent=chance.choice((None, None, 1)),
        sort_keys=chance.random() < 0.3,
    )
    if chance.random() < 0.05:
        text = text.replace("{", '{"i":5,', 1)
    if chance.random() < 0.05:
        text = text.replace('"s": "', '"s": "\\ud800', 1)
    if chance.random() < 0.05:
        text += chance.choice((" ", "\n", "x", "}"))
    return text.encode("utf-8", "surrogatepass")


def data(chance: random.Random, kind: str) -> bytes | None:
    """Return a random key or value as bytes: None, a valid one, or one that no serde reads."""
    dice = chance.random()
    if dice < 0.1:
        return None
    if dice < 0.2:
        return chance.choice(_BROKEN)
    if kind == "integer":
        return struct.pack(
            ">i", chance.choice([number for number in _INTS if -(1 << 31) <= number < 1 << 31])
        )
    if kind == "long":
        return struct.pack(">q", chance.choice(_INTS))
    if kind == "double":
        if dice < 0.3:
            return chance.randbytes(8)
        return struct.pack(">d", chance.choice(_FLOATS))
    if kind == "json":
        return _json(chance)
    return chance.choice(_TEXTS).encode()


def records(chance: random.Random, kinds: tuple[str, str], count: int) -> list[TopicRecord]:
    """Return records with times in any order, some of them with headers."""
    return [
        TopicRecord(
            data(chance, kinds[0]),
            data(chance, kinds[1]),
            chance.choice((0, 5, 10_000, number * 100, 1_700_000_000_123)),
            chance.choice(((), (), (("h", b"1"), ("h", None)))),
        )
        for number in range(count)
    ]


@dataclass
class Scope:
    """The types of key and value, which expressions can use."""

    chance: random.Random
    key: str
    value: str

    def _leaves(self, kind: str) -> list[Column]:
        names = {
            "text": "text",
            "bytes": "bytes",
            "integer": "int",
            "long": "int",
            "double": "float",
        }
        names |= {"int": "int", "float": "float", "flag": "flag"}
        results = [col(side) for side in ("key", "value") if names.get(getattr(self, side)) == kind]
        fields = {
            "int": ("i", "j"),
            "float": ("x", "place.height", "other.height"),
            "text": ("s", "t", "place.city", "other.city"),
            "flag": ("b",),
        }
        for side in ("key", "value"):
            if getattr(self, side) == "json":
                results += [col(f"{side}.{name}") for name in fields.get(kind, ())]
        return results

    def make(self, kind: str, depth: int) -> Column:
        """Return a random expression of a type."""
        chance = self.chance
        leaves = self._leaves(kind)
        if depth == 0 or chance.random() < 0.15:
            if leaves and chance.random() < 0.85:
                return chance.choice(leaves)
            values: dict[str, Any] = {
                "int": (0, 1, -3, 1 << 62),
                "float": (0.0, 0.5, -1e300, math.nan),
                "text": ("", "a", "é", " "),
                "flag": (True, False),
            }
            return lit(chance.choice(values[kind])) if kind in values else col("key")
        makers = {"int": self._int, "float": self._float, "text": self._text, "flag": self._flag}
        if kind == "bytes":
            return leaves[0]
        return makers[kind](depth - 1)

    def _two(self, kind: str, depth: int) -> tuple[Column, Column]:
        return self.make(kind, depth), self.make(kind, depth)

    def _either(self, kind: str, depth: int) -> Column:
        one, other = self._two(kind, depth)
        if self.chance.random() < 0.5:
            return coalesce(one, other)
        return when(self.make("flag", depth), one, self.chance.choice((other, None)))

    def _int(self, depth: int) -> Column:
        one, other = self._two("int", depth)
        makes = (
            lambda: one + other,
            lambda: one - other,
            lambda: one * other,
            lambda: one % other,
            lambda: -one,
            lambda: abs(one),
            lambda: self.make("text", depth).length(),
            lambda: self._either("int", depth),
        )
        return self.chance.choice(makes)()

    def _float(self, depth: int) -> Column:
        one = self.make("float", depth)
        other = self.make(self.chance.choice(("int", "float")), depth)
        makes = (
            lambda: one + other,
            lambda: other - one,
            lambda: one * other,
            lambda: one / other,
            lambda: self.make("int", depth) / self.make("int", depth),
            lambda: other % one,
            lambda: -one,
            lambda: abs(one),
            lambda: self._either("float", depth),
        )
        return self.chance.choice(makes)()

    def _text(self, depth: int) -> Column:
        one, other = self._two("text", depth)
        chance = self.chance
        makes = (
            lambda: one.concat(other),
            lambda: one.upper(),
            lambda: one.lower(),
            lambda: one.trim(),
            lambda: one.substring(chance.randint(-6, 6), chance.randint(-1, 4)),
            lambda: self._either("text", depth),
        )
        return chance.choice(makes)()

    def _flag(self, depth: int) -> Column:
        chance = self.chance
        kind = chance.choice(("int", "float", "text", "flag"))
        one, other = self._two(kind, depth)
        text, part = self._two("text", depth)
        makes = (
            lambda: one == other,
            lambda: one != other,
            lambda: one < other,
            lambda: one <= other,
            lambda: one > other,
            lambda: one >= other,
            lambda: one.is_null(),
            lambda: text.starts_with(part),
            lambda: text.ends_with(part),
            lambda: text.contains(part),
            lambda: text.is_in("a", part, None),
            lambda: self.make("flag", depth) & self.make("flag", depth),
            lambda: self.make("flag", depth) | self.make("flag", depth),
            lambda: ~self.make("flag", depth),
            lambda: self._either("flag", depth),
            lambda: self.make("int", depth) < self.make("float", depth),
        )
        return chance.choice(makes)()


_OF_TYPE = {"int": ("integer", "long", "any"), "float": ("double", "any"), "text": ("text", "any")}


def _serde(chance: random.Random, kind: str) -> Serde[Any]:
    """Return a random serde for a type."""
    if kind in SERDES:
        return SERDES[kind]
    name = chance.choice(_OF_TYPE.get(kind, ("any",)))
    return _PLAIN if name == "any" else SERDES[name]


def add_chain(builder: StreamsBuilder, chance: random.Random, name: str) -> tuple[str, str]:
    """Add a stream of random steps from `name` to `name`-out; return its types of key and value."""
    kinds = chance.choice(list(SERDES)), chance.choice(list(SERDES))
    scope = Scope(chance, *kinds)
    stream: Any = builder.stream(name, key=SERDES[kinds[0]], value=SERDES[kinds[1]])
    for number in range(chance.randint(1, 4)):
        depth = chance.randint(1, 3)
        step = chance.choice(
            ("filter", "filter_not", "map_values", "select_key", "map", "split", "lambda")
        )
        if step in ("filter", "filter_not"):
            stream = getattr(stream, step)(scope.make("flag", depth))
        elif step == "split":
            test = scope.make("flag", depth)
            arms = stream.split(named=f"{name}-{number}-").branch(test, "one").default_branch("two")
            one, stream = arms[f"{name}-{number}-one"], arms[f"{name}-{number}-two"]
            one.to(f"{name}-out", key=_serde(chance, scope.key), value=_serde(chance, scope.value))
        elif step == "lambda" and chance.random() < 0.3:
            stream = stream.filter(lambda key, value: key is not None or value is None)
        elif step == "map":
            kinds_made = chance.choice(("int", "text")), chance.choice(("float", "flag", "int"))
            stream = stream.map(tuple(scope.make(kind, depth) for kind in kinds_made))
            scope.key, scope.value = kinds_made
        elif step in ("map_values", "select_key"):
            kind = chance.choice(("int", "float", "text", "flag"))
            struct = scope.make(kind, depth)
            if step == "map_values" and chance.random() < 0.2:
                struct = struct_of(
                    one=struct, two=struct_of(three=scope.make("float", 1)), four=None
                )
                kind = "struct"
            stream = getattr(stream, step)(struct)
            setattr(scope, "value" if step == "map_values" else "key", kind)
    stream.to(f"{name}-out", key=_serde(chance, scope.key), value=_serde(chance, scope.value))
    return kinds
