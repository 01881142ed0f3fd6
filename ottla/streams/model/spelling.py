"""Hints for names in camelCase: an AttributeError names the attribute in snake_case."""

import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Python keywords.
_KEPT = {"as", "with", "from", "in"}


def snake_case(name: str) -> str:
    """Return the snake_case form of a name of Kafka Streams."""
    result = _HUMP.sub("_", name).lower()
    return result + "_" if result in _KEPT else result


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question with the most similar of the names; an empty text if none is similar."""
    near = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _sentence(owner: type, name: str) -> str:
    """Return the error message for a missing attribute."""
    public_names = [attribute for attribute in dir(owner) if not attribute.startswith("_")]
    python_name = snake_case(name)
    near = (
        [python_name]
        if python_name in public_names
        else difflib.get_close_matches(python_name, public_names, 1, 0.75)
    )
    near = near or difflib.get_close_matches(name, public_names, 1, 0.75)
    hint = f"; did you mean {near[0]}?" if near else ""
    for names, advice in getattr(owner, "_elsewhere", ()):
        if python_name in names:
            return f"{owner.__name__} has no {name}: {advice.format(python_name)}"
    return f"{owner.__name__} has no {name}{hint}"


class _Spelled(type):
    """The metaclass that gives the same hints for class methods."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise AttributeError(_sentence(cls, name))


class SnakeCase(metaclass=_Spelled):
    """Base class of types with Kafka Streams' names in snake_case; a missing name gets a hint.

    `_elsewhere` has names that users may look for here, and the alternatives.
    """

    _elsewhere: ClassVar[tuple[tuple[frozenset[str], str], ...]] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(_sentence(type(self), name))
