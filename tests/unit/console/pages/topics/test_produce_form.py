"""The produce form with the bytes of a record: a browser sends them back unchanged."""

import dataclasses
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ConfigError
from ottla.console.fields import Fields
from ottla.console.model.messages.decoding import decode_optional
from ottla.console.model.messages.values import MessageRow
from ottla.console.model.producing import InputFormat, InputHeader, encode
from ottla.console.pages.topics.messages import parse_time, time_field
from ottla.console.pages.topics.produce_form import (
    AGAIN_MAX_BYTES,
    fields_of,
    header_line,
    read_form,
    read_headers,
)

CONTENTS = st.one_of(
    st.none(),
    st.binary(max_size=12),
    st.text(max_size=12).map(str.encode),
    st.text('ab\r\n\t "{}[]:,1\x85\u2028ü', max_size=8).map(str.encode),
    st.sampled_from(
        [b'{"a":\r\n 1}', b"\r\nx\r\n", b"\nx", b"\x00\x00\x00\x07", b"{}", b'"', b" "]
    ),
)
NAMES = st.one_of(st.text(max_size=8), st.sampled_from(["a:b", ' "x', '"q"', " ", "n\n"]))
HEADERS = st.lists(st.tuples(NAMES, CONTENTS), max_size=4)


def row_of(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> MessageRow:
    return MessageRow(
        topic="orders",
        partition=1,
        offset=5,
        timestamp_ms=0,
        timestamp_type="create",
        key=decode_optional(key),
        value=decode_optional(value),
        headers=tuple((name, decode_optional(raw)) for name, raw in headers),
        size_bytes=len(key or b"") + len(value or b""),
    )


def as_a_browser_sends(fields: dict[str, str]) -> str:
    """Return the form as a browser sends it: line ends of text areas are CR LF, others vanish."""
    areas = ("value", "headers")
    sent: dict[str, str] = {}
    for name, text in fields.items():
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        sent[name] = lines.replace("\n", "\r\n" if name in areas else "")
    return urlencode(sent)


@given(CONTENTS, CONTENTS, HEADERS)
def test_a_record_is_sent_again_byte_by_byte(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    """An unchanged form has the key, the value and the headers of the record, also binary ones."""
    fields = fields_of(row_of(key, value, headers))
    request = read_form(Fields(as_a_browser_sends(fields)), "orders")
    assert (request.topic, request.partition) == ("orders", 1)
    assert encode(request.key, request.key_format, "key") == key
    assert encode(request.value, request.value_format, "value") == value
    again = [
        (name, None if text is None else encode(text, chosen, "header"))
        for name, text, chosen in map(dataclasses.astuple, request.headers)
    ]
    assert again == headers


def test_text_is_shown_as_text_and_json_is_checked() -> None:
    """Most headers have the simple form; only what is not text has another."""
    fields = fields_of(
        row_of(b"k", b'{"a": 1}', [("trace", b"1"), ("none", None), ("id", b"\xff")])
    )
    assert (fields["key_format"], fields["key"]) == ("text", "k")
    assert (fields["value_format"], fields["value"]) == ("json", '{"a": 1}')
    assert fields["headers"] == 'trace: 1\nnone\n"id": {"hex": "ff"}'


def test_a_tombstone_stays_a_tombstone() -> None:
    """A record without a value is sent again without one."""
    fields = fields_of(row_of(b"k", None, []))
    assert fields["value_format"] == "null"


def test_a_record_that_is_too_large_for_the_form_is_refused() -> None:
    """The sentence says so, and a part of the record is never sent."""
    with pytest.raises(ConfigError, match=r"orders-1 at offset 5 has 1\.00 MiB.*use a producer"):
        fields_of(row_of(None, b"x" * (AGAIN_MAX_BYTES + 1), []))


@pytest.mark.parametrize(
    "text",
    [": 1", '"a', '"a" 1', '"a": 1', '"a": {"hex": 1}', '"a": {"hexa": "ff"}', '"a": {}'],
)
def test_a_malformed_header_is_refused(text: str) -> None:
    """The sentence has the line and both forms."""
    with pytest.raises(ConfigError, match=r'cannot read header .*name: value.*\{"hex": "00ff"\}'):
        read_headers(text)


def test_headers_are_read_in_both_forms() -> None:
    """A line is the name and the value, or JSON."""
    header = InputHeader("id", "00ff", InputFormat.HEX)
    assert read_headers('a: b: c\r\n\r\nempty:\r\nnull\r\n"id" : {"hex": "00ff"}\r\n"n": null') == (
        InputHeader("a", "b: c"),
        InputHeader("empty", ""),
        InputHeader("null", None),
        header,
        InputHeader("n", None),
    )
    assert read_headers(header_line(header)) == (header,)


def test_a_typed_time_is_in_the_zone_of_the_form() -> None:
    """With daylight saving; a time with an offset, or milliseconds, need no zone."""
    winter = Fields("timestamp=2026-01-31T12:00&zone=Europe/Berlin")
    summer = Fields("timestamp=2026-07-31T12:00&zone=Europe/Berlin")
    assert time_field(winter, "timestamp") == parse_time("2026-01-31T11:00Z")
    assert time_field(summer, "timestamp") == parse_time("2026-07-31T10:00")
    offset = Fields("timestamp=2026-01-31T12:00%2B01:00&zone=Asia/Tokyo")
    assert time_field(offset, "timestamp") == parse_time("2026-01-31T11:00")
    assert time_field(Fields("timestamp=5&zone=Asia/Tokyo"), "timestamp") == 5
    assert time_field(Fields("zone=Asia/Tokyo"), "timestamp") is None


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "/etc/localtime"])
def test_an_unknown_zone_is_an_error_with_the_remedy(zone: str) -> None:
    """Also one that is a path."""
    with pytest.raises(ConfigError, match="write the time with its offset"):
        time_field(Fields(f"timestamp=2026-01-31T12:00&zone={zone}"), "timestamp")
