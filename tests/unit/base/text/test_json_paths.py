"""Paths into JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ConfigError
from ottla.base.text.json_paths import JsonPath

_DOCUMENT = json.loads('{"a": [{"b c": 1}, {"b": 2}], "b": 3}')


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [_DOCUMENT]),
        ("$.a[0]['b c']", [1]),
        ("$.a[-1].b", [2]),
        ("$.a[*].b", [2]),
        ("$..b", [3, 2]),
        ("$.b.*", []),
        ("$.a[2]", []),
    ],
)
def test_path_selects_values(path: str, values: list[object]) -> None:
    """A path that leads nowhere selects nothing."""
    assert JsonPath(path).select(_DOCUMENT) == values


def test_path_at_the_start_of_a_text() -> None:
    """The rest of the text is returned as it is."""
    path, rest = JsonPath.at_start("$.a[0]== 1")
    assert (path.text, rest) == ("$.a[0]", "== 1")


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_malformed(text: str) -> None:
    """Any text is a path or raises ConfigError."""
    try:
        JsonPath("$" + text).select({"a": [1, {"b": None}]})
    except ConfigError as error:
        assert "JSON path" in str(error)
