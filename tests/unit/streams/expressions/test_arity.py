"""Functions with one parameter (the value) or two (key and value)."""

import pytest

from ottla.streams.expressions.arity import with_key
from ottla.streams.model.errors import TopologyError


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda value: ("value", value), ("value", 2)),
        (lambda key, value: (key, value), (1, 2)),
        (lambda value, scale=10: value * scale, 20),
        (str, "2"),
        (lambda *both: both, (1, 2)),
    ],
)
def test_a_function_receives_the_value_or_key_and_value(function: object, expected: object) -> None:
    """The number of its required parameters decides; built-in types receive the value."""
    assert with_key(function, 2, "a mapper")(1, 2) == expected  # type: ignore[arg-type]


def test_a_builtin_joiner_receives_the_values() -> None:
    """A function without a signature, such as max, can be a joiner."""
    assert with_key(max, 3, "a joiner")("key", 1, 2) == 2


def test_a_function_with_too_many_parameters_is_rejected() -> None:
    """The error names the function's role."""
    with pytest.raises(TopologyError, match=r"a mapper takes 1 argument, or 2"):
        with_key(lambda one, two, three: None, 2, "a mapper")


def test_a_value_that_is_not_callable_is_rejected() -> None:
    """The error is a TypeError that names the role."""
    with pytest.raises(TypeError, match="a predicate is a function"):
        with_key(5, 2, "a predicate")  # type: ignore[arg-type]
