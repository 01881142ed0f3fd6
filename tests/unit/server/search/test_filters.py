"""Filters and parameters of a search."""

import json
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError
from ottla.server.search.filters import Filters, Matcher
from ottla.server.search.json_path import parse_condition
from ottla.server.search.request import Anchor, Position, parse_lag, parse_search
from ottla.wire.records.records import Record

_RECORD = Record(
    b"Key-1", '{"total": 100, "name": "Änne", "a": [{"b c": true}]}'.encode(), (("trace", b"4bf9"),)
)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, True),
        ({"key": "ey-"}, True),
        ({"key": "ey-", "value": "absent"}, False),
        ({"value": "Änne"}, True),
        ({"key": "KEY"}, False),
        ({"key": "KEY", "ignore_case": True}, True),
        ({"value": "äNNE", "ignore_case": True}, True),
        ({"key": ".", "ignore_case": True}, False),
        ({"key_regex": r"^Key-\d$"}, True),
        ({"key_regex": "^ey"}, False),
        ({"value_regex": '"total": 1.0'}, True),
        ({"headers": ("trace",)}, True),
        ({"headers": ("trace=bf",)}, True),
        ({"headers": ("trace=xx",)}, False),
        ({"headers": ("other",)}, False),
        ({"json": ("$.total >= 100", "$.a[0]['b c'] == true")}, True),
        ({"json": ("$.total > 100",)}, False),
    ],
)
def test_all_filters_must_match(filters: dict[str, Any], expected: bool) -> None:
    """A filter for a text is searched in the bytes; expressions match anywhere."""
    matcher = Matcher(Filters(**filters))
    assert matcher.matches(_RECORD) is expected
    if expected:
        assert matcher.can_match(b"".join([b"xx", _RECORD.key or b"", _RECORD.value or b"", b"trace4bf9"]))  # fmt: skip


def test_null_matches_no_filter() -> None:
    """A record without key and value is found only by its headers."""
    null = Record(None, None, (("h", None),))
    assert Matcher(Filters(headers=("h",))).matches(null)
    for name in ("key", "value", "key_regex", "value_regex"):
        assert not Matcher(Filters(**{name: "a"})).matches(null)
    assert not Matcher(Filters(json=("$",))).matches(null)
    assert not Matcher(Filters(headers=("h=x",))).matches(null)


def test_batch_without_the_text_is_skipped() -> None:
    """The prefilter applies to texts whose case matters, and to nothing else."""
    assert not Matcher(Filters(value="needle")).can_match(b"hay")
    assert Matcher(Filters(value="needle", ignore_case=True)).can_match(b"hay")
    assert Matcher(Filters(value_regex="needle")).can_match(b"hay")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("$", True),
        ("$.a.b", True),
        ("$.a.x", False),
        ("$.a.b == 1", True),
        ("$.a.b==1.0", True),
        ("$.a.b != 2", True),
        ("$.a.b == true", False),
        ("$.t == true", True),
        ("$.t != 1", True),
        ('$.s == "x y"', True),
        ('$.s =~ "^X"', False),
        ('$.s =~ "y$"', True),
        ('$.s < "y"', True),
        ("$.s < 5", False),
        ("$.n == null", True),
        ("$.x != 1", False),
        ("$.l[1] == 20", True),
        ("$.l[2]", False),
        ("$.l.name", False),
        ('$["a"]["b"] <= 1', True),
        ("$.l[*] == 20", True),
        ("$.l[*] == 30", False),
        ("$.l[-1] == 20", True),
        ("$.a.*", True),
        ("$..b == 1", True),
    ],
)
def test_conditions_on_json(condition: str, expected: bool) -> None:
    """Types are compared, too: true is not 1, and a missing path matches nothing."""
    document = json.loads('{"a": {"b": 1}, "t": true, "s": "x y", "n": null, "l": [10, 20]}')
    assert parse_condition(condition).holds(document) is expected


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("a.b", r"does not begin with \$"),
        (f"$[{'9' * 5000}]", "write it as"),
        ("$[\u0663]", "write it as"),
        ("$.a[?@.b]", "cannot be read from"),
        ("$.a = 1", "cannot be read from"),
        ("$.a == x", "not a JSON literal"),
        ("$.a > null", "only numbers and texts"),
        ("$.a =~ 5", "in double quotes"),
    ],
)
def test_wrong_condition_is_explained(condition: str, sentence: str) -> None:
    """The error quotes the condition."""
    with pytest.raises(ConfigError, match=sentence):
        parse_condition(condition)


def test_wrong_expression_is_explained() -> None:
    """RE2's reason is part of the error; hostile expressions are linear in time."""
    with pytest.raises(
        ApiError, match=r"'\(a' is not a valid regular expression: missing closing \)"
    ):
        Matcher(Filters(value_regex="(a"))
    assert not Matcher(Filters(value_regex="(a+)+$")).matches(Record(None, b"a" * 5000 + b"b"))


def test_repeated_descents_take_linear_time() -> None:
    """A path with many descents visits each value of a document once for each of them."""
    nested: Any = {"end": 1}
    for _ in range(300):
        nested = {"a": [nested]}
    value = json.dumps(nested).encode()
    assert Matcher(Filters(json=("$" + "..*" * 30 + "..end",))).matches(Record(None, value))


def test_deep_json_does_not_match() -> None:
    """A value that nests deeper than the interpreter's stack is no document."""
    assert not Matcher(Filters(json=("$",))).matches(Record(None, b"[" * 200_000))


def test_parameters_of_a_search() -> None:
    """Every parameter reaches the request, decoded."""
    search = parse_search(
        "topic=a%20b&partition=1&partition=0&from=@5&to=-10&value=x%26y&header=h%3D1&header=g"
        "&json=%24.a&ignore_case=true&isolation=read_committed&limit=0&value_limit=9"
    )
    assert (search.topic, search.partitions) == ("a b", (1, 0))
    assert (search.start, search.end) == (Position(Anchor.TIME, 5), Position(Anchor.TAIL, 10))
    assert search.filters == Filters(value="x&y", headers=("h=1", "g"), json=("$.a",), ignore_case=True)  # fmt: skip
    assert (search.read_committed, search.limit, search.value_limit) == (True, 0, 9)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("", "topic is missing"),
        ("topic=a&topic=b", "topic is given 2 times"),
        ("topic=a&valeu=1", "'valeu' is not a parameter; known parameters: topic"),
        ("topic=a&from=soon", "from 'soon' is not a position"),
        ("topic=a&to=+1", "to ' 1' is not a position"),
        ("topic=a&partition=-1", "partition '-1' is not a number"),
        ("topic=a&limit=%D9%A1", "is not a number of 0 or more"),
        ("topic=a&limit=99999999999999999999", "is not a number of 0 or more"),
        ("topic=a&isolation=serializable", "isolation 'serializable' is not one of: read_unc"),
    ],
)
def test_wrong_parameter_is_explained(query: str, sentence: str) -> None:
    """The error quotes the value."""
    with pytest.raises(ConfigError) as caught:
        parse_search(query)
    assert sentence in str(caught.value)


def test_parameters_of_a_lag_report() -> None:
    """A topic may contain a colon in neither form, but a group may be any text."""
    assert parse_lag("group=a:b&position=t:0:42") == (["a:b"], [("t", 0, 42)])
    with pytest.raises(ConfigError, match="TOPIC:PARTITION:OFFSET"):
        parse_lag("position=t:0")
