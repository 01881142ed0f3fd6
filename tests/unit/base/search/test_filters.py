"""The short forms of filters, and the conditions of the language on JSON."""

import json
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.base.search.filters import Filters
from ottla.base.search.language import parse_filter
from ottla.base.search.matching import Matcher
from ottla.wire.records.records import Record

_RECORD = Record(
    b"Key-1", '{"total": 100, "name": "Änne", "a": [{"b c": true}]}'.encode(), (("trace", b"4bf9"),)
)


def compiled(**filters: Any) -> Matcher:
    """Return the matcher of short forms."""
    return Matcher(Filters(**filters).conditions())


def matches(matcher: Matcher, record: Record) -> bool:
    """Return True if a record matches."""
    return matcher.matches(record.key, record.value, record.headers)


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
        ({"where": ("$.total >= 100", "$.a[0]['b c'] == true")}, True),
        ({"where": ("$.total > 100",)}, False),
    ],
)
def test_all_filters_must_match(filters: dict[str, Any], expected: bool) -> None:
    """A filter for a text is searched in the bytes; expressions match anywhere."""
    matcher = compiled(**filters)
    assert matches(matcher, _RECORD) is expected
    if expected:
        assert matcher.can_match(b"".join([b"xx", _RECORD.key or b"", _RECORD.value or b"", b"trace4bf9"]))  # fmt: skip


def test_null_matches_no_filter() -> None:
    """A record without key and value is found only by its headers."""
    null = Record(None, None, (("h", None),))
    assert matches(compiled(headers=("h",)), null)
    for name in ("key", "value", "key_regex", "value_regex"):
        assert not matches(compiled(**{name: "a"}), null)
    assert not matches(compiled(where=("$",)), null)
    assert not matches(compiled(headers=("h=x",)), null)


def test_batch_without_the_text_is_skipped() -> None:
    """The prefilter applies to texts whose case matters, and to nothing else."""
    assert not compiled(value="needle").can_match(b"hay")
    assert compiled(value="needle", ignore_case=True).can_match(b"hay")
    assert compiled(value_regex="needle").can_match(b"hay")


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
    assert (
        Matcher(parse_filter(condition)).matches(None, json.dumps(document).encode(), ())
        is expected
    )


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
        Matcher(parse_filter(condition))


def test_wrong_expression_is_explained() -> None:
    """RE2's reason is part of the error; hostile expressions are linear in time."""
    with pytest.raises(
        ConfigError, match=r"'\(a' is not a valid regular expression: missing closing \)"
    ):
        compiled(value_regex="(a")
    assert not matches(compiled(value_regex="(a+)+$"), Record(None, b"a" * 5000 + b"b"))


def test_repeated_descents_take_linear_time() -> None:
    """A path with many descents visits each value of a document once for each of them."""
    nested: Any = {"end": 1}
    for _ in range(300):
        nested = {"a": [nested]}
    value = json.dumps(nested).encode()
    assert matches(compiled(where=("$" + "..*" * 30 + "..end",)), Record(None, value))


def test_deep_json_does_not_match() -> None:
    """A value that nests deeper than the interpreter's stack is no document."""
    assert not matches(compiled(where=("$",)), Record(None, b"[" * 200_000))
