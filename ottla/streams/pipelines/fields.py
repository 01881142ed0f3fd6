"""Access to the keys of one mapping by name and type; wrong and unknown keys become problems."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ottla.streams.pipelines.document import Entries, Items, Node, Nothing, Text
from ottla.streams.pipelines.problems import FilePosition, Problems, suggest

T = TypeVar("T")

_INTERVAL = re.compile(
    r"\s*\d+(\.\d+)?\s+(millisecond|second|minute|hour|day|week)s?"
    r"(\s+\d+\s+(millisecond|second|minute|hour|day|week)s?)*\s*",
    re.IGNORECASE,
)
_FLAGS = {"true": True, "false": False}


def kind_of(node: Node) -> str:
    """Return a node's type in words."""
    names = {Items: "a list", Entries: "a mapping", Nothing: "nothing"}
    return names.get(type(node), f"{str(node)!r}")


@dataclass
class Fields:
    """The keys of a mapping that is called `subject` in messages (as in "source flights").

    There is a method for each type of value. It returns the value, or the default if the key is
    missing or its value is wrong; `close` notes the keys that were never read.
    """

    node: Entries
    subject: str
    problems: Problems
    name_position: FilePosition | None = None
    _read_names: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return any(key.text == name for key, _ in self.node)

    def position(self, name: str | None = None) -> FilePosition:
        """Return the position of a key; if it is missing, the position of the mapping's name or
        start.
        """
        result = (key.position for key, _ in self.node if key.text == name)
        return next(result, self.name_position or self.node.position)

    def error(self, name: str | None, message: str) -> None:
        """Note a problem at a key."""
        self.problems.error(self.position(name), f"{self.subject}: {message}")

    def node_of(self, name: str, *, required: bool = False) -> Node | None:
        """Return the value of a key, or None if it is missing."""
        self._read_names.append(name)
        for key, value in self.node:
            if key.text != name:
                continue
            if isinstance(value, Nothing):
                self.error(name, f"{name} has no value.")
                return None
            return value
        if required:
            self.error(None, f"{name} is missing.")
        return None

    def text(self, name: str, *, required: bool = False) -> Text | None:
        """Return a text with its position."""
        node = self.node_of(name, required=required)
        if node is None or isinstance(node, Text):
            return node
        self._wrong(name, node, "a text")
        return None

    def word(self, name: str, default: str = "") -> str:
        """Return a text without its position."""
        result = self.text(name)
        return default if result is None else result.text

    def texts(self, name: str, *, required: bool = False) -> tuple[Text, ...]:
        """Return a list of texts; a single one may be written without a list."""
        node = self.node_of(name, required=required)
        if node is None:
            return ()
        if isinstance(node, Text):
            return (node,)
        if not isinstance(node, Items):
            self._wrong(name, node, "a list of texts")
            return ()
        wrong = [entry for entry in node if not isinstance(entry, Text)]
        for entry in wrong:
            self.problems.error(
                entry.position, f"{self.subject}: {name} must contain texts, not {kind_of(entry)}."
            )
        if not node.items:
            self.error(name, f"{name} is an empty list.")
        return tuple(entry for entry in node if isinstance(entry, Text))

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        """Return one of the allowed words."""
        result = self.text(name)
        if result is None:
            return default
        if result.text in choices:
            return result.text
        self.problems.error(
            result.position,
            f"{self.subject}: invalid value {result.text!r} for {name}. {suggest(result.text, choices)}",
        )
        return default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return true or false."""
        return self._parsed(name, "true or false", _FLAGS.__getitem__, default)

    def number(self, name: str) -> int | None:
        """Return an integer above 0."""
        return self._parsed(name, "an integer above 0", _positive, None)

    def interval(self, name: str, *, required: bool = False) -> str:
        """Return an interval in Spark's syntax, such as "10 minutes"; empty if it is missing."""
        if required and name not in self:
            self.error(None, f"{name} is missing.")
        return self._parsed(name, "an interval, such as 10 minutes", _interval, "")

    def pairs(self, name: str) -> dict[str, Text]:
        """Return a mapping of words to texts."""
        node = self.node_of(name)
        if node is None:
            return {}
        if not isinstance(node, Entries):
            self._wrong(name, node, "a mapping of names to texts")
            return {}
        results = {}
        for key, value in node:
            if isinstance(value, Text):
                results[key.text] = value
            else:
                message = f"{self.subject}: {name}.{key.text} must be a text, not {kind_of(value)}."
                self.problems.error(key.position, message)
        return results

    def below(self, name: str, subject: str, *, required: bool = False) -> "Fields | None":
        """Return the fields of a nested mapping."""
        node = self.node_of(name, required=required)
        if node is None:
            return None
        if isinstance(node, Entries):
            return Fields(node, subject, self.problems)
        self._wrong(name, node, "a mapping")
        return None

    def named(self, name: str, noun: str) -> Mapping[str, "Fields"]:
        """Return the mappings inside a mapping by their names, as in `sources`."""
        results: dict[str, Fields] = {}
        outer = self.below(name, name)
        for key, value in outer.node if outer is not None else ():
            if isinstance(value, Entries):
                subject = f"{noun} {key.text}"
                results[key.text] = Fields(value, subject, self.problems, key.position)
            else:
                message = f"{noun} {key.text}: expected a mapping of keys, not {kind_of(value)}."
                self.problems.error(key.position, message)
        return results

    def pick(self, names: Sequence[str], purpose: str) -> str | None:
        """Return the only key of some that is present; None, with the problem noted, if not exactly
        one is.
        """
        results = [name for name in names if name in self]
        if len(results) == 1:
            return results[0]
        offered = " or ".join((", ".join(names[:-1]), names[-1]))
        if results:
            self.error(results[1], f"only one of {' and '.join(results)} is allowed.")
            return None
        near = [
            (key, hint)
            for key, _ in self.node
            if (hint := suggest(key.text, names)).startswith("Did you mean")
        ]
        for key, hint in near:
            self.problems.error(key.position, f"{self.subject}: unknown key {key.text}. {hint}")
        if not near:
            self.error(None, f"{purpose}: {offered} is missing.")
        return None

    def close(self) -> None:
        """Note the unknown keys."""
        for key, _ in self.node:
            if key.text not in self._read_names:
                self.problems.error(
                    key.position,
                    f"{self.subject}: unknown key {key.text}. {suggest(key.text, self._read_names)}",
                )

    def _parsed(self, name: str, expected: str, parse: Callable[[str], T], default: T) -> T:
        result = self.text(name)
        if result is None:
            return default
        try:
            return parse(result.text)
        except (ValueError, KeyError):
            self.problems.error(
                result.position, f"{self.subject}: {name} must be {expected}, not {result.text!r}."
            )
            return default

    def _wrong(self, name: str, node: Node, expected: str) -> None:
        self.problems.error(
            node.position, f"{self.subject}: {name} must be {expected}, not {kind_of(node)}."
        )


def _positive(text: str) -> int:
    number = int(text.replace("_", ""))
    if number <= 0:
        raise ValueError(text)
    return number


def _interval(text: str) -> str:
    if not _INTERVAL.fullmatch(text):
        raise ValueError(text)
    return " ".join(text.split())
