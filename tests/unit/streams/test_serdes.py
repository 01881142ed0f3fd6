"""Serdes write Kafka's bytes and read them back."""

from dataclasses import dataclass

import pytest

from ottla.streams.records import Change, SessionWindow, TimeWindow, Windowed
from ottla.streams.serdes import Serde, Serdes, changes, over_default, resolve


@dataclass
class Place:
    """Somewhere."""

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
def test_a_serde_writes_known_bytes_and_reads_them(
    serde: Serde[object], value: object, data: bytes
) -> None:
    """The bytes are those of Kafka's own serializers."""
    assert serde.to_bytes(value) == data
    assert serde.from_bytes(data) == value


def test_nothing_stays_nothing() -> None:
    """No serde sees a tombstone."""
    assert Serdes.json().to_bytes(None) is None
    assert Serdes.long().from_bytes(None) is None


def test_json_reads_dataclasses_within_dataclasses() -> None:
    """Type hints say what is read; unknown fields of a newer writer are left out."""
    serde = Serdes.json(Place)
    place = Place("a", [Place("b")])
    assert serde.deserialize(serde.serialize(place)) == place
    assert serde.deserialize(b'{"name":"c","later":1}') == Place("c")


def test_json_refuses_what_has_no_json_form() -> None:
    """The error says what to do."""
    with pytest.raises(TypeError, match="give a serde"):
        Serdes.json().serialize(object())


@pytest.mark.parametrize("change", [Change("n", None), Change(None, "o"), Change("n", "o", False)])
def test_changes_keep_what_they_do_not_have(change: Change[str]) -> None:
    """A missing new or old value is not an empty one."""
    serde = changes(Serdes.string())
    assert serde.deserialize(serde.serialize(change)) == change


def test_a_serde_over_the_default_is_made_when_that_is_known() -> None:
    """Windowed keys of a topic without serdes are written with the default one's bytes."""
    serde = resolve(over_default(Serdes.session_windowed), Serdes.long())
    assert len(serde.serialize(Windowed(1, SessionWindow(0, 1)))) == 24
    assert resolve(None, Serdes.string()) is Serdes.string()
