"""Serdes write and read the bytes of Kafka's serializers."""

import math
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from ottla.streams.model.errors import SerializationError
from ottla.streams.model.records import Change, SessionWindow, TimeWindow, Windowed
from ottla.streams.serdes import (
    Serde,
    Serdes,
    WindowedSerdes,
    changes,
    over_default,
    resolve,
)


@dataclass
class Place:
    """A place with its neighbours."""

    name: str
    near: "list[Place] | None" = None


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (Serdes.string(), "ß", "ß".encode()),
        (Serdes.bytes(), b"\0x", b"\0x"),
        (Serdes.integer(), -2, b"\xff\xff\xff\xfe"),
        (Serdes.long(), 258, b"\0\0\0\0\0\0\1\2"),
        (Serdes.double(), 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        (Serdes.short(), -2, b"\xff\xfe"),
        (Serdes.float(), 1.5, b"\x3f\xc0\0\0"),
        (Serdes.boolean(), True, b"\1"),
        (Serdes.uuid(), UUID(int=2), b"00000000-0000-0000-0000-000000000002"),
        (
            Serdes.list_serde(Serdes.string()),
            ["a", None, "bc"],
            bytes.fromhex("01000000030000000161ffffffff000000026263"),
        ),
        (
            Serdes.list_serde(Serdes.integer()),
            [1, None, -2],
            bytes.fromhex("0000000001000000010000000300000001fffffffe"),
        ),
        (Serdes.json(), {"a": [1, None]}, b'{"a":[1,null]}'),
        (
            Serdes.time_windowed(Serdes.string(), 10),
            Windowed("k", TimeWindow(5, 15)),
            b"k\0\0\0\0\0\0\0\5",
        ),
        (
            Serdes.session_windowed(Serdes.string()),
            Windowed("k", SessionWindow(1, 2)),
            b"k\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1",
        ),
    ],
)
def test_a_serde_writes_and_reads_known_bytes(
    serde: Serde[object], value: object, data: bytes
) -> None:
    """The bytes are the same as from Kafka's own serializers."""
    assert serde.to_bytes(value) == data
    assert serde.from_bytes(data) == value


def test_a_serde_is_found_by_type_or_built_from_functions() -> None:
    """The function is `Serdes.serdeFrom`; int and float are Kafka's long and double."""
    assert Serdes.serde_from(int) is Serdes.long()
    assert Serdes.serde_from(float) is Serdes.double()
    text_serde = Serdes.serde_from(str.encode, bytes.decode)
    assert text_serde.deserialize(text_serde.serialize("ß")) == "ß"
    with pytest.raises(TypeError, match="serde_from supports str, bytes, int"):
        Serdes.serde_from(Place)


def test_windowed_serdes_have_kafkas_factories() -> None:
    """They accept a type or a serde."""
    windowed = Windowed("k", TimeWindow(5, 1_005))
    theirs = WindowedSerdes.time_windowed_serde_from(str, "1 s")
    assert theirs.deserialize(theirs.serialize(windowed)) == windowed
    session = Windowed("k", SessionWindow(1, 2))
    sessions = WindowedSerdes.session_windowed_serde_from(Serdes.string())
    assert sessions.serialize(session) == Serdes.session_windowed(Serdes.string()).serialize(
        session
    )


@pytest.mark.parametrize(
    ("serde", "data"), [(Serdes.boolean(), b"\2"), (Serdes.void(), b"x"), (Serdes.uuid(), b"x")]
)
def test_invalid_bytes_are_rejected(serde: Serde[object], data: bytes) -> None:
    """A source then calls its exception handler."""
    with pytest.raises(ValueError):
        serde.deserialize(data)


def test_none_is_not_serialized() -> None:
    """A tombstone does not reach the serde."""
    assert Serdes.json().to_bytes(None) is None
    assert Serdes.long().from_bytes(None) is None


def test_json_reads_nested_dataclasses() -> None:
    """Type hints select the classes; unknown fields of a newer writer are ignored."""
    serde = Serdes.json(Place)
    place = Place("a", [Place("b")])
    assert serde.deserialize(serde.serialize(place)) == place
    assert serde.deserialize(b'{"name":"c","later":1}') == Place("c")


def test_json_that_is_nested_too_deeply_is_rejected() -> None:
    """An exception handler then decides about the record; a RecursionError would end the task."""
    with pytest.raises(SerializationError, match="the JSON is nested more deeply than"):
        Serdes.json().deserialize(b"[" * 5000 + b"]" * 5000)
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(SerializationError, match="the value is nested more deeply than"):
        Serdes.json().serialize(nested)


def test_json_rejects_values_without_a_json_form() -> None:
    """The error suggests another serde."""
    with pytest.raises(TypeError, match="use a serde"):
        Serdes.json().serialize(object())


@pytest.mark.parametrize("change", [Change("n", None), Change(None, "o"), Change("n", "o", False)])
def test_a_change_keeps_missing_values(change: Change[str]) -> None:
    """A missing new or old value differs from an empty one."""
    serde = changes(Serdes.string())
    assert serde.deserialize(serde.serialize(change)) == change


def test_a_windowed_serde_can_wrap_the_default_serde() -> None:
    """The windowed keys of a topic without serdes are serialized with the default serde."""
    serde = resolve(over_default(Serdes.session_windowed), Serdes.long())
    assert len(serde.serialize(Windowed(1, SessionWindow(0, 1)))) == 24
    assert resolve(None, Serdes.string()) is Serdes.string()


@dataclass
class Visit:
    """A visit; the last field is not checked."""

    at: int
    size: float = 1.0
    place: Place | None = None
    places: dict[str, Place] = field(default_factory=dict)
    note: str = None  # type: ignore[assignment]
    rest: Any = None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"at":"x"}', 'Visit: field at must be int, not "x"'),
        ('{"at":true}', "field at must be int, not true"),
        ('{"at":1.5}', "field at must be int, not 1.5"),
        ('{"at":null}', "field at must be int, not null"),
        ('{"size":1}', "has no field at"),
        ("[]", r"must be dict, not \[\]"),
        ('{"at":1,"place":{"name":"a","near":[{"name":3}]}}', r"place.near\[0\].name must be str"),
        ('{"at":1,"places":{"k":{}}}', "field places.k has no field name"),
        ('{"at":1,"size":NaN}', "contains NaN, which JSON does not have"),
    ],
)
def test_json_that_does_not_fit_a_dataclass_is_rejected(text: str, sentence: str) -> None:
    """The error names the field and the type that it must have."""
    with pytest.raises(SerializationError, match=sentence):
        Serdes.json(Visit).deserialize(text.encode())


def test_json_fields_of_a_dataclass_that_fit() -> None:
    """Whole numbers are also floats, and a field whose default is None may be null."""
    serde = Serdes.json(Visit)
    text = b'{"at":1,"size":2,"place":null,"note":null,"rest":[1]}'
    assert serde.deserialize(text) == Visit(1, 2, None, {}, None, [1])  # type: ignore[arg-type]


@dataclass
class Stay:
    """A stay, with types of every kind."""

    visit: Visit
    days: list[int] = field(default_factory=list)
    prices: dict[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    either: int | str = 0
    guest: str | None = ""


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (Stay(Visit("x")), 'Stay: field visit.at must be int, not str "x"'),  # type: ignore[arg-type]
        (Stay(Visit(True)), "field visit.at must be int, not bool true"),
        (Stay(Visit(None)), "field visit.at must be int, not NoneType null"),  # type: ignore[arg-type]
        (
            Stay(Visit(1, place=Place("a", [Place(3)]))),
            r"place.near\[0\].name must be str, not int",
        ),  # type: ignore[arg-type]
        (Stay(Place("a")), "field visit must be Visit, not Place"),  # type: ignore[arg-type]
        (Stay(Visit(1), [1, "2"]), r"field days\[1\] must be int, not str"),  # type: ignore[list-item]
        (Stay(Visit(1), 5), "field days must be list, not int 5"),  # type: ignore[arg-type]
        (Stay(Visit(1), prices={"a": "b"}), "field prices.a must be float, not str"),  # type: ignore[dict-item]
        (Stay(Visit(1), prices={1: 2.0}), "field prices.1 has a key that must be str"),  # type: ignore[dict-item]
        (Stay(Visit(1), names=("a", 1)), r"field names\[1\] must be str"),  # type: ignore[arg-type]
        (Stay(Visit(1), guest=1), "field guest must be str, not int 1"),  # type: ignore[arg-type]
        ({"days": []}, "has no field visit"),
        ({"visit": {"at": 1, "sise": 2}}, "field visit has the field sise, which Visit has not"),
        ([], r"must be Stay, not list \[\]"),
    ],
)
def test_a_value_that_does_not_fit_a_dataclass_is_not_written(value: Any, sentence: str) -> None:
    """Otherwise every reader of the topic rejects the record."""
    with pytest.raises(SerializationError, match=sentence):
        Serdes.json(Stay).serialize(value)


def test_a_dataclass_without_one_of_its_fields_is_not_written() -> None:
    """The attribute was deleted."""
    visit = Visit(1)
    del visit.at
    with pytest.raises(SerializationError, match="has no field at"):
        Serdes.json(Visit).serialize(visit)


@pytest.mark.parametrize(
    "value",
    [
        Stay(Visit(1), [1], {"a": 1}, ("b",), "c", None),
        Stay(Visit(1, 2, Place("a", [Place("b")]), {"p": Place("c")}, None, 1)),  # type: ignore[arg-type]
    ],
)
def test_values_that_fit_a_dataclass_are_written(value: Any) -> None:
    """Whole numbers are also floats; fields without a type, and unions, are not checked."""
    value.visit.rest = None
    written = Serdes.json(Stay).serialize(value)
    assert Serdes.json(Stay).deserialize(written) == value


def test_a_dict_with_the_fields_of_a_dataclass_is_written() -> None:
    """Fields with a default may be missing."""
    assert Serdes.json(Stay).serialize({"visit": {"at": 1}}) == b'{"visit":{"at":1}}'


def test_lists_and_numbers_are_checked_before_they_are_written() -> None:
    """A serde may be of another type than a class."""
    with pytest.raises(SerializationError, match=r"field \[1\] must be int, not str"):
        Serdes.json(list[int]).serialize([1, "2"])  # type: ignore[list-item]
    assert Serdes.json(dict[str, Any]).serialize({"a": 1}) == b'{"a":1}'


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"t": math.nan}, "field t is nan"),
        ({"t": math.inf}, "field t is inf"),
        ({"a": [1, {"b": -math.inf}]}, r"field a\[1\].b is -inf"),
        (Visit(1, math.nan), "field size is nan"),
        (math.nan, "the value is nan"),
    ],
)
def test_json_does_not_write_numbers_that_json_does_not_have(value: Any, sentence: str) -> None:
    """Other languages could not read them."""
    with pytest.raises(SerializationError, match=f"{sentence}, which JSON does not have"):
        Serdes.json().serialize(value)


@pytest.mark.parametrize("text", [b"[NaN]", b'{"a":Infinity}', b"-Infinity"])
def test_json_does_not_read_numbers_that_json_does_not_have(text: bytes) -> None:
    """Python's own reader accepts them."""
    with pytest.raises(SerializationError, match="which JSON does not have"):
        Serdes.json().deserialize(text)
