"""JSON that is laid out and changed without a loss of its digits and names."""

import json
import re

import pytest
from hypothesis import given

from ottla.base.text.json_paths import JsonPath
from ottla.base.text.json_text import laid_out, parse_nodes, replaced
from ottla.testing.corpus.strategies import json_texts

DOCUMENT = '{"price":100.00,"a":1,"a":{"b":[1e400,"x"]},"l":[{"a":"y"},[]]}'


def test_a_laid_out_text_has_its_own_digits() -> None:
    """Numbers and equal names stay; empty lists stay on one line."""
    expected = """{
  "price": 100.00,
  "a": 1,
  "a": {
    "b": [
      1e400,
      "x"
    ]
  },
  "l": [
    {
      "a": "y"
    },
    []
  ]
}"""
    assert laid_out(DOCUMENT) == expected


@given(json_texts())
def test_laying_out_changes_white_space_only(text: str) -> None:
    """The tokens are the same, in the same order."""
    tokens = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]', re.DOTALL)
    assert tokens.findall(laid_out(text)) == tokens.findall(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.a", '{"price":100.00,"a":"*","a":"*","l":[{"a":"y"},[]]}'),
        ("$.a.b[1]", '{"price":100.00,"a":1,"a":{"b":[1e400,"*"]},"l":[{"a":"y"},[]]}'),
        ("$..a", '{"price":100.00,"a":"*","a":"*","l":[{"a":"*"},[]]}'),
        ("$.l[*]", '{"price":100.00,"a":1,"a":{"b":[1e400,"x"]},"l":["*","*"]}'),
        ("$.absent", DOCUMENT),
    ],
)
def test_selected_values_are_replaced(path: str, expected: str) -> None:
    """All members of a name are selected, and the rest of the text is unchanged."""
    root = parse_nodes(DOCUMENT, json.loads)
    assert replaced(DOCUMENT, root, JsonPath(path), lambda _: '"*"') == expected
