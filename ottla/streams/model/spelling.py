"""Names as Kafka Streams writes them: whoever types one in camelCase is told its name here."""

import difflib
import re
from typing import TYPE_CHECKING, Any, ClassVar

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Words that Python keeps for itself.
_KEPT = {"as", "with", "from", "in"}


def snake_case(name: str) -> str:
    """Return a name of Kafka Streams as it is written here."""
    found = _HUMP.sub("_", name).lower()
    return found + "_" if found in _KEPT else found


def _sentence(owner: type, name: str) -> str:
    """Return what is said of a name that is not there."""
    known = [each for each in dir(owner) if not each.startswith("_")]
    wanted = snake_case(name)
    near = [wanted] if wanted in known else difflib.get_close_matches(wanted, known, 1, 0.75)
    near = near or difflib.get_close_matches(name, known, 1, 0.75)
    hint = f"; did you mean {near[0]}?" if near else ""
    for names, told in getattr(owner, "_elsewhere", ()):
        if wanted in names:
            return f"{owner.__name__} has no {name}: {told.format(wanted)}"
    return f"{owner.__name__} has no {name}{hint}"


class _Spelled(type):
    """A class whose missing class methods are told the same way."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise AttributeError(_sentence(cls, name))


class SnakeCase(metaclass=_Spelled):
    """A type with Kafka Streams' names in snake_case; a missing one is told with the name that was meant.

    `_elsewhere` has names that people look for here, and where they are.
    """

    _elsewhere: ClassVar[tuple[tuple[frozenset[str], str], ...]] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(_sentence(type(self), name))
