"""Decoding, filters, JSON paths, masking and templates: the pure parts of the message pages."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ConfigError
from ottla.base.search.conditions import (
    Condition,
    Field,
    JsonComparison,
    Operator,
)
from ottla.base.search.matching import Matcher
from ottla.console.model.messages.decoding import Format, decode
from ottla.console.model.messages.masking import Masking, MaskingRule
from ottla.console.model.messages.templates import compile_template
from ottla.console.model.producing import InputFormat, ProduceRequest, encode, preview


@pytest.mark.parametrize(
    ("raw", "shown", "text"),
    [
        (b"", Format.TEXT, ""),
        (b"hello", Format.TEXT, "hello"),
        (b'{"a": 1}', Format.JSON, '{"a": 1}'),
        (b"{broken", Format.TEXT, "{broken"),
        ("grüße".encode(), Format.TEXT, "grüße"),
        (struct.pack(">q", 42), Format.INT64, "42"),
        (struct.pack(">i", -1), Format.INT32, "-1"),
        (b"\xff\x00\x01", Format.HEX, "ff0001"),
    ],
)
def test_formats_are_recognized(raw: bytes, shown: Format, text: str) -> None:
    """JSON, text, integers and other bytes are recognized without a hint."""
    decoded = decode(raw)
    assert (decoded.format, decoded.text, decoded.size_bytes) == (shown, text, len(raw))


@given(st.binary(max_size=200), st.sampled_from(list(Format)), st.integers(1, 100))
def test_any_bytes_are_decoded_in_any_format(raw: bytes, chosen: Format, limit: int) -> None:
    """No bytes raise, and no text is longer than the limit."""
    decoded = decode(raw, chosen, text_limit=limit)
    assert len(decoded.text) <= limit
    assert decoded.format is not Format.AUTO


def test_deeply_nested_json_is_text() -> None:
    """JSON that is nested too deeply to be parsed is shown as text."""
    assert decode(b"[" * 100_000).format is Format.TEXT


def _matches(condition: Condition, value: bytes | None, key: bytes | None = None) -> bool:
    return Matcher((condition,)).matches(key, value, [("trace", b"abc"), ("empty", None)])


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        (Condition(Field.VALUE, Operator.CONTAINS, "und"), b"refund", True),
        (Condition(Field.VALUE, Operator.CONTAINS, "UND"), b"refund", False),
        (Condition(Field.VALUE, Operator.CONTAINS, "UND", ignores_case=True), b"refund", True),
        (Condition(Field.VALUE, Operator.CONTAINS, "und", negated=True), b"refund", False),
        (Condition(Field.VALUE, Operator.EQUALS, "7"), struct.pack(">q", 7), True),
        (Condition(Field.VALUE, Operator.STARTS_WITH, "re"), b"refund", True),
        (Condition(Field.VALUE, Operator.REGEX, "^r.*d$"), b"refund", True),
        (Condition(Field.VALUE, Operator.IS_NULL), None, True),
        (Condition(Field.VALUE, Operator.CONTAINS, "x"), None, False),
        (Condition(Field.HEADER, Operator.EXISTS, header="empty"), b"", True),
        (Condition(Field.HEADER, Operator.EXISTS, header="other"), b"", False),
        (Condition(Field.HEADER, Operator.EQUALS, "abc", header="trace"), b"", True),
        (Condition(Field.ANY, Operator.CONTAINS, "bc"), b"", True),
    ],
)
def test_conditions(condition: Condition, value: bytes | None, expected: bool) -> None:
    """Each operator compares the field that the condition names."""
    assert _matches(condition, value) is expected


@pytest.mark.parametrize(
    ("path", "comparison", "text", "expected"),
    [
        ("$.total", JsonComparison.EXISTS, "", True),
        ("$.absent", JsonComparison.EXISTS, "", False),
        ("$.total", JsonComparison.GREATER, "99", True),
        ("$.total", JsonComparison.LESS, "99", False),
        ("$.items[*].id", JsonComparison.EQUALS, "b", True),
        ("$.items[-1].id", JsonComparison.EQUALS, '"b"', True),
        ("$..id", JsonComparison.CONTAINS, "a", True),
        ("$['is paid']", JsonComparison.EQUALS, "true", True),
        ("$['is paid']", JsonComparison.EQUALS, "1", False),
        ("$.items[0].id", JsonComparison.GREATER, "1", False),
    ],
)
def test_json_paths_compare_values(
    path: str, comparison: JsonComparison, text: str, expected: bool
) -> None:
    """Numbers, texts and truth values are compared with values of their own type."""
    value = {"total": 100, "is paid": True, "items": [{"id": "a"}, {"id": "b"}]}
    condition = Condition(Field.VALUE, Operator.JSON_PATH, text, path=path, comparison=comparison)
    assert _matches(condition, json.dumps(value).encode()) is expected


@pytest.mark.parametrize(
    "condition",
    [
        Condition(Field.VALUE, Operator.REGEX, "("),
        Condition(Field.VALUE, Operator.REGEX, "(?=x)"),
        Condition(Field.VALUE, Operator.CONTAINS, ""),
        Condition(Field.VALUE, Operator.JSON_PATH, path="total"),
        Condition(Field.VALUE, Operator.JSON_PATH, path="$.a[?(@.b)]"),
        Condition(Field.VALUE, Operator.JSON_PATH, path="$.a" * 400),
    ],
)
def test_invalid_conditions_are_rejected(condition: Condition) -> None:
    """Malformed expressions and paths raise ConfigError; none is evaluated as a program."""
    with pytest.raises(ConfigError):
        Matcher((condition,))


def test_hostile_expressions_take_linear_time() -> None:
    """An expression that takes exponential time with backtracking is matched at once."""
    condition = Condition(Field.VALUE, Operator.REGEX, "^(a+)+$")
    assert not _matches(condition, b"a" * 50_000 + b"b")


def test_a_needle_is_in_every_match() -> None:
    """Only conditions whose text is in the record's bytes can skip batches."""
    contains = Condition(Field.VALUE, Operator.CONTAINS, "refund")
    both = Matcher((contains, Condition(Field.KEY, Operator.EQUALS, "k1")))
    assert both.can_match(b"a refund of k1")
    assert not both.can_match(b"k1")
    assert not both.can_match(b"a refund")
    assert Matcher((Condition(Field.VALUE, Operator.CONTAINS, "refund", negated=True),)).can_match(b"")  # fmt: skip
    assert Matcher((Condition(Field.VALUE, Operator.EQUALS, "4200"),)).can_match(b"")


def test_masking_hides_fields_keys_and_headers() -> None:
    """A rule hides a field, a match or a header, and only in the topics that it names."""
    rules = [
        MaskingRule("cust.*", "value", "$.card"),
        MaskingRule("cust.*", "key", pattern="[0-9]{4}"),
        MaskingRule(".*", "header", "token"),
    ]
    masking = Masking(rules, "customers")
    assert masking.value(b'{"card":"4242","name":"ann"}') == b'{"card":"******","name":"ann"}'
    assert masking.value(b"no json 4242") == b"******"
    assert masking.key(b"id-4242-x") == b"id-******-x"
    assert masking.headers([("token", b"s"), ("t", b"x")]) == [("token", b"******"), ("t", b"x")]
    assert Masking(rules, "orders").value(b'{"card":"4242"}') == b'{"card":"4242"}'
    assert not Masking(rules[:2], "orders")


def test_malformed_rules_are_rejected_for_every_topic() -> None:
    """A malformed path raises even if the rule does not apply to the topic."""
    with pytest.raises(ConfigError):
        Masking([MaskingRule("other", "value", "card")], "orders")


def test_templates_are_filled_in() -> None:
    """Numbers, times and choices are filled in for each record."""
    template = compile_template("{{n}} {{now}} {{iso_now}} {{choice(a)}} {{random_int(3,3)}}")
    assert template(7, 0) == "7 0 1970-01-01T00:00:00.000+00:00 a 3"


@pytest.mark.parametrize("text", ["{{x}}", "{{n", "{{random_int(a,b)}}", "{{n.__class__}}"])
def test_unknown_templates_are_rejected(text: str) -> None:
    """Only the functions of the table exist; nothing is evaluated."""
    with pytest.raises(ConfigError):
        compile_template(text)


def test_values_are_encoded_in_their_format() -> None:
    """Typed text becomes bytes of its format, or an error that names the format."""
    assert encode("-1", InputFormat.INT64, "key") == b"\xff" * 8
    assert encode("ff 00", InputFormat.HEX, "key") == b"\xff\x00"
    assert encode("ignored", InputFormat.NULL, "key") is None
    with pytest.raises(ConfigError, match="int32"):
        encode("1e9", InputFormat.INT32, "value")
    with pytest.raises(ConfigError, match="json"):
        encode("{", InputFormat.JSON, "value")


def test_the_preview_shows_the_first_records() -> None:
    """The preview has the filled-in keys and values of the first records."""
    request = ProduceRequest(
        "t", "v{{n}}", key="{{n}}", key_format=InputFormat.INT64, count=5, has_templates=True
    )
    assert preview(request, now_ms=0) == [("0", "v0"), ("1", "v1"), ("2", "v2")]
