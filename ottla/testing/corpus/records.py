"""The fixed set of awkward records."""

import json
import random
import string
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Header = tuple[str, bytes | None]

BEGIN_MS = 1_767_225_600_000
"""The time of the first record, 2026-01-01T00:00Z; each record is a second after the last one."""
_FAR_AHEAD_MS = 4_102_444_800_000
_COUNT = 300
_WIRE_MAGIC = b"\x00"


@dataclass(frozen=True, slots=True)
class AwkwardRecord:
    """A record with the reason why it is awkward; the timestamp is in ms (-1: none)."""

    reason: str
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: tuple[Header, ...] = ()
    timestamp: int = BEGIN_MS


def fixed_records(seed: int = 44) -> tuple[AwkwardRecord, ...]:
    """Return about 300 records, the same for the same seed; none has more than 1 000 000 bytes.

    The first ones are one for each reason; the others combine their parts.
    """
    chosen = random.Random(seed)  # noqa: S311 - reproducible, not secret
    listed = [*_bytes(), *_json(), *_registry(), *_times(), *_headers(), *_sizes(chosen)]
    small = [row for row in listed if len(row.value or b"") < 1000]
    while len(listed) < _COUNT:
        parts = [chosen.choice(small) for _ in range(4)]
        listed.append(
            AwkwardRecord(
                "parts of others: " + "; ".join(sorted({part.reason for part in parts})),
                parts[0].key,
                parts[1].value,
                parts[2].headers if len(parts[2].headers) < 100 else (),
                parts[3].timestamp,
            )
        )
    return tuple(
        AwkwardRecord(row.reason, row.key, row.value, row.headers, BEGIN_MS + number * 1000)
        if row.timestamp == BEGIN_MS
        else row
        for number, row in enumerate(listed)
    )


_TEXTS = (
    ("an empty text", b""),
    ("a text with letters beyond ASCII", "žluťoučký kůň 🐎".encode()),
    ("colours of a terminal", b"\x1b[32mINFO\x1b[0m server started"),
    ("a NUL", b"name\x00value"),
    ("a form feed", b"page one\x0cpage two"),
    ("marks that change the direction of text", "abc\u202edef\u2066ghi".encode()),
    ("controls of the C1 block", "a\u0085b\u009bc".encode()),
    ("separators of lines and paragraphs", "a\u2028b\u2029c".encode()),
    ("a byte order mark", "\ufeffid,name".encode()),
    ("the replacement character, in valid UTF-8", "a\ufffdb".encode()),
    ("a line break and quotes", b'first\nsecond "quoted", third\r\nlast'),
    ("blanks at the ends", b"  both ends  "),
    ("only a line break", b"\n"),
    ("a formula of a spreadsheet", b'=HYPERLINK("http://example.invalid")'),
    ("a minus sign in front of text", b"-1+1"),
    ("an apostrophe in front of a formula", b"'=1"),
    ("markup", b"<script>alert(1)</script>"),
    ("a backslash", b"C:\\new\\table\\\\"),
    ("the text of an escape", b"\\x00\\u0000"),
    ("the word null", b"null"),
    ("the hexadecimal text of other bytes", b"fffe00"),
    ("bytes that are not UTF-8", b"\xff\xfe\x00"),
    ("Latin-1", "déjà vu".encode("latin-1")),
    ("half of a surrogate pair, encoded", b"\xed\xa0\x80x"),
    ("an overlong encoding", b"\xc0\xafetc"),
    ("four bytes, as an integer", b"\x00\x00\x00\x07"),
    ("four letters, as an integer", b"abcd"),
    ("eight bytes, an unsigned id", struct.pack(">Q", 2**64 - 1)),
    ("eight bytes, a double that is no number", struct.pack(">d", float("nan"))),
    ("every byte", bytes(range(256))),
    ("the encoded form of base64", b"AAECAw=="),
)


def _bytes() -> Iterator[AwkwardRecord]:
    yield AwkwardRecord("a null key", None)
    yield AwkwardRecord("a tombstone", b"k", None)
    yield AwkwardRecord("null key and null value", None, None)
    yield AwkwardRecord("an empty key", b"")
    for reason, text in _TEXTS:
        yield AwkwardRecord(f"{reason}, in the key", text)
        yield AwkwardRecord(f"{reason}, in the value", b"k", text)


def _nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


_DOCUMENTS = (
    ("digits after the point", '{"price":100.00}'),
    ("a number beyond a double", '{"rate":12345678901234567890.125}'),
    ("a number beyond 64 bit", '{"n":123456789012345678901234567890}'),
    ("a number beyond the range of a double", '{"big":1e400,"small":1e-400}'),
    ("an exponent", '{"n":1E2,"m":1.50e+3}'),
    ("a negative zero", '{"n":-0,"m":-0.0}'),
    ("an unsigned id of 64 bit", '{"id":18446744073709551615}'),
    ("an id beyond the integers of JavaScript", '{"id":9007199254740993}'),
    ("equal names", '{"a":1,"a":2}'),
    ("names that differ in case", '{"id":1,"ID":2}'),
    ("numbers that are none", '{"a":NaN,"b":Infinity,"c":-Infinity}'),
    ("white space that is not canonical", '{ "a" :\t1 ,\n"b":[ ] }'),
    ("escapes", '{"a":"\\u0041\\/\\ud83d\\ude00"}'),
    ("half of a surrogate pair", '{"a":"\\ud800"}'),
    ("an escaped NUL", '{"a":"x\\u0000y"}'),
    ("an escaped name", '{"\\u0061":1}'),
    ("fields with the names of columns", '{"_id":1,"_time":2,"_offset":3,"headers":4}'),
    ("fields with the names of SQL", '{"select":1,"from":2,"order":"x"}'),
    ("a point in a name", '{"a.b":1,"a":{"b":2}}'),
    ("the empty name", '{"":1}'),
    ("a quote in a name", '{"it\'s":1,"say \\"x\\"":2}'),
    ("an array", "[1,2.0,null]"),
    ("a scalar", "42"),
    ("a scalar text", '"text"'),
    ("null", "null"),
    ("an empty object", "{}"),
    ("an object that is cut", '{"a":1'),
    ("text after an object", '{"a":1} x'),
    ("two documents", '{"a":1}{"a":2}'),
    ("a byte order mark before an object", '\ufeff{"a":1}'),
    ("one field with numbers and texts", '{"mixed":1}'),
    ("the same field as a text", '{"mixed":"one"}'),
    ("the same field as an object", '{"mixed":{"one":1}}'),
    ("a time", '{"at":"2026-01-01T00:00:00Z"}'),
)


def _json() -> Iterator[AwkwardRecord]:
    for reason, text in _DOCUMENTS:
        yield AwkwardRecord(f"JSON with {reason}", b"json", text.encode())
    yield AwkwardRecord("JSON with nesting of 2 000", b"json", _nested(2000))
    for size in (30_000, 900_000):
        fields = {f"f{number}": "x" * 90 for number in range(size // 100)}
        document = json.dumps(fields, separators=(",", ":")).encode()
        yield AwkwardRecord(f"JSON of {size // 1000} KB", b"json", document)


def _registry() -> Iterator[AwkwardRecord]:
    """Values in the wire format of schema registries: a zero byte, the id of the schema, the data."""

    def framed(schema_id: int, data: bytes) -> bytes:
        return _WIRE_MAGIC + struct.pack(">I", schema_id) + data

    yield AwkwardRecord(
        "wire format, JSON Schema", b"registry", framed(5, b'{"id": 7, "city": "Praha"}')
    )
    yield AwkwardRecord("wire format, Avro", b"registry", framed(6, b"\x0e\x0aPraha"))
    yield AwkwardRecord(
        "wire format, Avro with a reference", b"registry", framed(7, b"\x0e\x08shop")
    )
    yield AwkwardRecord(
        "wire format, Protobuf", b"registry", framed(8, b"\x00\x08\x07\x12\x05Praha")
    )
    yield AwkwardRecord("wire format, unknown schema", b"registry", framed(2**31 - 1, b"\x01"))
    yield AwkwardRecord("wire format in the key", framed(5, b'{"id": 7}'))
    yield AwkwardRecord("wire format without data", b"registry", framed(5, b""))


def _times() -> Iterator[AwkwardRecord]:
    yield AwkwardRecord("timestamp 0", timestamp=0)
    yield AwkwardRecord("timestamp 1", timestamp=1)
    yield AwkwardRecord("no timestamp", timestamp=-1)
    yield AwkwardRecord("a timestamp far ahead", timestamp=_FAR_AHEAD_MS)
    for number in range(2):
        yield AwkwardRecord(f"equal timestamps, {number}", timestamp=BEGIN_MS + 500)
    yield AwkwardRecord("a timestamp before the one before", timestamp=BEGIN_MS + 10)


def _headers() -> Iterator[AwkwardRecord]:
    many = tuple((f"h{number}", str(number).encode()) for number in range(1000))
    for reason, headers in (
        ("a null header", (("h", None),)),
        ("an empty header", (("h", b""),)),
        ("headers of equal names", (("h", b"1"), ("h", b"2"), ("g", b"3"), ("h", None))),
        ("equal headers", (("h", b"1"), ("h", b"1"))),
        ("a header without a name", (("", b"1"),)),
        ("a header that is not UTF-8", (("h", b"\xff\xfe"),)),
        ("a header with a control character", (("h", b"a\x1bb"),)),
        ("a name with = and ,", (("a=b,c", b"x=y,z"),)),
        ("a name beyond ASCII", (("ž 🐎", b"1"),)),
        ("1 000 headers", many),
    ):
        yield AwkwardRecord(reason, b"headers", b"v", headers)


def _sizes(chosen: random.Random) -> Iterator[AwkwardRecord]:
    letters = string.ascii_letters.encode()
    text = bytes(chosen.choices(letters, k=20_000))
    yield AwkwardRecord("20 000 characters", b"size", text)
    yield AwkwardRecord("20 001 characters, more than a cell of SQL", b"size", text + b"x")
    yield AwkwardRecord("a key of 10 000 bytes", text[:10_000])


def sizes_of(records: Sequence[AwkwardRecord]) -> int:
    """Return the bytes of all keys and values."""
    return sum(len(row.key or b"") + len(row.value or b"") for row in records)
