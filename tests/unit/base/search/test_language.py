"""The language of filters: parsed, written back, and explained if it is wrong."""

import json
import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ottla.base.errors import ConfigError
from ottla.base.search.conditions import Condition, Field, JsonComparison, Operator
from ottla.base.search.language import filter_text, parse_filter
from ottla.base.search.matching import Matcher

_KEY, _VALUE = b"Key-1", b'{"total": 100, "id": "7", "n": null, "s": "a b", "x": "\\ud800"}'
_HEADERS = [("trace", b"4bf9"), ("trace", None), ("a b", b'{"id": 7}'), ("raw", b"\xff\xfe")]


def matches(text: str, key: bytes | None = _KEY, value: bytes | None = _VALUE) -> bool:
    """Return True if a record with these parts matches a text."""
    return Matcher(parse_filter(text)).matches(key, value, _HEADERS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("key", True),
        ('key == "Key-1"', True),
        ('key != "Key-1"', False),
        ('key starts-with "key"', False),
        ('key starts-with "key" ignore-case', True),
        ('key == "KEY-1" ignore-case', True),
        ('key == "KEY-" ignore-case', False),
        ('key =~ "^k.*[0-9]$" ignore-case', True),
        ('not key contains "x"', True),
        ('key contains "ey" and $.total >= 100 and not value is null', True),
        ('key contains "ey" and $.total > 100', False),
        ("header.trace", True),
        ("header.trace is null", True),
        ("header.raw is null", False),
        ('header.trace contains "bf"', True),
        ('header.other contains "bf"', False),
        ('header["a b"]', True),
        ('header["a b"] $.id == 7', True),
        ('header["a b"] $.id starts-with "7"', False),
        ('header contains "4bf"', True),
        ('any contains "4bf"', True),
        ('any contains "nothing"', False),
        ("$.id == 7", True),
        ('$.id == "7"', True),
        ("$.total == 100.0", True),
        ('$.total == "100"', False),
        ("$.n is null", True),
        ("$.id is null", False),
        ("not $.absent", True),
        ('$.s contains "A" ignore-case', True),
        ('$.s starts-with "a "', True),
        ('$.s == "A B" ignore-case', True),
        ('$.x =~ "a"', False),
        ('value $.s =~ "b$"', True),
        ("key $.id", False),
    ],
)
def test_filters(text: str, expected: bool) -> None:
    """All conditions must match; a condition compares all parts that it names."""
    assert matches(text) is expected


def test_null_parts() -> None:
    """A null key or value equals nothing, so it is not equal to any text."""
    assert matches("key is null and value is null", None, None)
    assert matches('key != "a"', None)
    assert not matches('key == "null"', None)
    assert not matches(["key", "value"][0], None)
    assert not matches("$", value=None)


@pytest.mark.parametrize("packed", [struct.pack(">q", 7), struct.pack(">i", 7), b"7"])
def test_numbers_equal_their_serialized_forms(packed: bytes) -> None:
    """Keys of integers are found as pages show them."""
    assert matches("key == 7", packed)
    assert matches('key == "7"', packed)
    assert not matches("key == 8", packed)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("total > 1", "does not begin with $, key, value"),
        ("keys", "does not begin with"),
        ("key > 1", "name a path, as in key $.total"),
        ("key contains refund", "'refund' is not a JSON literal: write texts in double quotes"),
        ("key contains 5", "contains needs a text in double quotes"),
        ('key contains ""', "needs a text"),
        ('key == "a" or key == "b"', "cannot be read from 'or key == \"b\"' on"),
        ('key == "a" and', "cannot be read from 'and' on"),
        ('header["a', "is not a JSON literal"),
        ("$.a == [" + "[" * 100_000, "is not a JSON literal"),
        ('key == "\\ud800"', "is not a valid text"),
        ('key =~ "(?=x)"', "not a valid regular expression"),
        ("$.a < true", "only numbers and texts have an order"),
        (" and ".join(["key"] * 21), "21 conditions are too many"),
    ],
)
def test_wrong_filter_is_explained(text: str, sentence: str) -> None:
    """The error quotes the part that is wrong."""
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Matcher(parse_filter(text))


_TEXTS = some.text(some.characters(codec="utf-8"), min_size=1, max_size=6)
_LITERALS = some.one_of(
    _TEXTS, some.integers(), some.booleans(), some.floats(allow_nan=False), some.none()
).map(json.dumps)
_FIELDS = some.builds(
    dict,
    field=some.sampled_from(list(Field)),
    header=_TEXTS,
    ignores_case=some.booleans(),
    negated=some.booleans(),
)
_UNORDERED = [JsonComparison.EQUALS, JsonComparison.NOT_EQUALS, JsonComparison.EXISTS]
_CONDITIONS = some.builds(
    lambda common, rest: Condition(**{**common, **rest}),
    _FIELDS,
    some.one_of(
        some.builds(
            dict,
            operator=some.sampled_from([row for row in Operator if row is not Operator.JSON_PATH]),
            text=_TEXTS.map(re.escape),
        ),
        some.builds(
            dict,
            operator=some.just(Operator.JSON_PATH),
            path=some.sampled_from(["$", "$.a", "$['a b']", "$..c[-1]", "$.*"]),
            comparison=some.sampled_from(_UNORDERED),
            text=some.one_of(_LITERALS, _TEXTS),
        ),
        some.builds(
            dict,
            operator=some.just(Operator.JSON_PATH),
            path=some.just("$.a"),
            comparison=some.sampled_from([JsonComparison.CONTAINS, JsonComparison.REGEX]),
            text=_TEXTS.map(re.escape),
        ),
    ),
)
_PARTS = some.one_of(
    some.none(), some.binary(max_size=9), _TEXTS.map(str.encode), _LITERALS.map(str.encode),
    some.fixed_dictionaries({"a": some.one_of(_TEXTS, some.integers())}).map(lambda row: json.dumps(row).encode()),
)  # fmt: skip


@given(some.lists(_CONDITIONS, max_size=3), _PARTS, _PARTS, some.lists(some.tuples(_TEXTS, _PARTS)))
def test_texts_mean_the_same_as_conditions(
    conditions: list[Condition],
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
) -> None:
    """Conditions of the REST API are sent to brokers as texts, which select the same records."""
    parsed = parse_filter(filter_text(conditions))
    assert filter_text(parsed) == filter_text(conditions)
    expected = Matcher(conditions).matches(key, value, headers)
    assert Matcher(parsed).matches(key, value, headers) is expected
