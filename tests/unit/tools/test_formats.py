"""Output formats of `ottla consume`."""

import json

import pytest

from ottla.client.raw.consumer import ConsumedRecord
from ottla.tools.record.formats import compile_format, json_format, plain_format

RECORD = ConsumedRecord(
    topic="orders",
    partition=3,
    offset=42,
    timestamp=1700,
    timestamp_type="create",
    key=b"k",
    value=b"value",
    headers=[("a", b"1"), ("b", None)],
)
EMPTY = RECORD._replace(key=None, value=None, headers=[])


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (r"%t[%p] %o: %k %s\n", b"orders[3] 42: k value\n"),
        ("%K|%S|%T|%%", b"1|5|1700|%"),
        ("%h", b"a=1,b=NULL"),
        ("%R%s", b"\0\0\0\5value"),
        (r"plain\t", b"plain\t"),
        ("", b""),
    ],
)
def test_tokens_are_replaced_by_parts_of_the_record(text: str, data: bytes) -> None:
    """The letters are kcat's, and bytes are written unchanged."""
    assert compile_format(text)(RECORD) == data


def test_null_is_empty_or_a_word() -> None:
    """The length is -1 in both forms, which distinguishes null from an empty value."""
    assert compile_format("%k|%s|%K|%S|%R")(EMPTY) == b"||-1|-1|\xff\xff\xff\xff"
    assert compile_format("%k|%s", null=b"NULL")(EMPTY) == b"NULL|NULL"


@pytest.mark.parametrize("text", ["%x", "100%", "%s %"])
def test_unknown_token_is_reported(text: str) -> None:
    """The error lists the supported tokens."""
    with pytest.raises(ValueError, match="is not a format token; supported tokens: %t %p"):
        compile_format(text)


def test_default_format_prints_the_value_as_a_line() -> None:
    """If a key delimiter is given, the key comes first."""
    assert plain_format(b"\n", None)(RECORD) == b"value\n"
    assert plain_format(b"\0", b": ")(RECORD) == b"k: value\0"
    assert plain_format(b"\n", b":", null=b"NULL")(EMPTY) == b"NULL:NULL\n"


def test_envelope_is_that_of_kcat() -> None:
    """Scripts that read kcat's JSON can read Ottla's."""
    line = json_format(RECORD)
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "topic": "orders",
        "partition": 3,
        "offset": 42,
        "tstype": "create",
        "ts": 1700,
        "headers": ["a", "1", "b", None],
        "key": "k",
        "payload": "value",
    }
    assert "headers" not in json.loads(json_format(EMPTY))


def test_binary_data_is_complete_in_json() -> None:
    """The bytes are added in base64 beside the readable part."""
    envelope = json.loads(json_format(RECORD._replace(value=b"\xff\x00")))
    assert envelope["payload_base64"] == "/wA="
    assert envelope["key"] == "k"
