"""JSON is read by msgspec, with the values of the standard library."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.streams import Serdes

_NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=10,
)


@given(_VALUES, st.booleans())
def test_a_value_is_the_one_of_the_standard_library(value: Any, is_ascii: bool) -> None:
    """Numbers of any size keep their type and value, and the order of fields is kept."""
    data = json.dumps(value, ensure_ascii=is_ascii).encode()
    expected, actual = json.loads(data), Serdes.json().deserialize(data)
    assert repr(actual) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [b'"\\ud800"', b"1E400", b'{"a":1,"a":2}', b"-0", b"-0.0", b"1180591620717411303424", b" [1] "],
)
def test_texts_at_the_limits_are_read(text: bytes) -> None:
    """Lone surrogates and numbers that overflow have the values of the standard library."""
    assert repr(Serdes.json().deserialize(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", [b"", b"01", b"[1,]", b"{'a': 1}"])
def test_a_text_that_is_no_json_is_an_error(text: bytes) -> None:
    """The error is the standard library's, with the position."""
    with pytest.raises(ValueError, match="line 1 column"):
        Serdes.json().deserialize(text)
