"""YAML with the position of every text; the only module that uses PyYAML.

YAML provides only the structure: lists, mappings and text. The reader of a text decides its type (a
number, true or false), so that `on`, `no` or `1_000` are never converted unexpectedly. Anchors and
aliases work; tags, merge keys and several documents in one file are rejected.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from ottla.streams.pipelines.problems import FilePosition, Problems

_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar and its position; `is_block` is True if it is a block scalar (`|`), with its line
    breaks.
    """

    text: str
    position: FilePosition
    is_block: bool = False
    indentation: int = 0

    def at(self, index: int) -> FilePosition:
        """Return the position of a character of the text."""
        before = self.text[:index]
        line, column = before.count("\n"), index - (before.rfind("\n") + 1)
        if self.is_block:
            return FilePosition(self.position.line + 1 + line, self.indentation + column + 1)
        return (
            self.position
            if line
            else FilePosition(self.position.line, self.position.column + column)
        )

    def at_line(self, line: int, column: int) -> FilePosition:
        """Return the position of a line (from 1) and column (from 0) of the text."""
        lines = self.text.split("\n")
        before = sum(len(line_text) + 1 for line_text in lines[: line - 1])
        return self.at(min(before + column, len(self.text)))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple["Node", ...]
    position: FilePosition

    def __iter__(self) -> Iterator["Node"]:
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping: its keys as they are written, each once, and their values."""

    entries: tuple[tuple[Text, "Node"], ...]
    position: FilePosition

    def __iter__(self) -> Iterator[tuple[Text, "Node"]]:
        return iter(self.entries)


@dataclass(frozen=True, slots=True)
class Nothing:
    """A key without a value."""

    position: FilePosition


Node = Text | Items | Entries | Nothing


def parse(text: str, problems: Problems) -> Node | None:
    """Return the content of a file; None, with the problem noted, if it is not valid YAML."""
    try:
        node = _compose(text)
        if node is not None:
            return _Builder(text.splitlines(), problems).build(node)
        problems.error(FilePosition(1, 1), "The file is empty.")
    except RecursionError:
        problems.error(FilePosition(1, 1), "The file has too many levels: a pipeline has a few.")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = FilePosition(1, 1) if mark is None else _position(mark)
        problems.error(position, f"Invalid YAML: {_sentence(error)}.")
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        position = FilePosition(before.count("\n") + 1, len(before) - before.rfind("\n"))
        problems.error(position, f"Invalid YAML: character {error.character:#x} is not allowed.")
    return None


def _compose(text: str) -> yaml.Node | None:
    loader = yaml.BaseLoader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _sentence(error: yaml.MarkedYAMLError) -> str:
    context = error.context
    if context and error.context_mark is not None:
        context += f" that begins in line {error.context_mark.line + 1}"
    result = ", ".join(part for part in (context, error.problem) if part)
    # By far the most frequent cause: SQL and types contain colons.
    if "mapping values" in result:
        return f"{result}; a text that contains a colon and a space must be quoted"
    return f"{result}; indent with spaces, not with tabs" if r"'\t'" in result else result


def _position(mark: yaml.Mark) -> FilePosition:
    return FilePosition(mark.line + 1, mark.column + 1)


class _Builder:
    """Converts PyYAML's nodes to the classes of this module."""

    def __init__(self, lines: list[str], problems: Problems) -> None:
        self._lines = lines
        self._problems = problems
        self._open: set[int] = set()

    def build(self, node: yaml.Node) -> Node:
        position = _position(node.start_mark)
        if node.tag not in _TAGS:
            self._problems.error(position, f"Tags ({node.tag}) are not supported.")
        if id(node) in self._open:
            self._problems.error(position, "An alias must not refer to a node that contains it.")
            return Nothing(position)
        self._open.add(id(node))
        result = self._built(node, position)
        self._open.discard(id(node))
        return result

    def _built(self, node: yaml.Node, position: FilePosition) -> Node:
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self.build(child) for child in node.value), position)
        if isinstance(node, yaml.MappingNode):
            return self._entries(node, position)
        assert isinstance(node, yaml.ScalarNode)
        return self._text(node, position)

    def _text(self, node: yaml.ScalarNode, position: FilePosition) -> Node:
        if not node.value and node.style is None:
            return Nothing(position)
        if node.style == "|":
            below = self._lines[position.line : node.end_mark.line]
            used = next((line for line in below if line.strip()), "")
            return Text(node.value, position, True, len(used) - len(used.lstrip(" ")))
        quoted = (
            FilePosition(position.line, position.column + 1)
            if node.style in ("'", '"')
            else position
        )
        return Text(node.value, quoted)

    def _entries(self, node: yaml.MappingNode, position: FilePosition) -> Entries:
        entries: dict[str, tuple[Text, Node]] = {}
        for key, value in node.value:
            name = self.build(key)
            if not isinstance(name, Text):
                self._problems.error(_position(key.start_mark), "A key must be a scalar.")
            elif name.text in entries:
                first = entries[name.text][0].position.line
                self._problems.error(
                    name.position, f"Duplicate key {name.text} (first in line {first})."
                )
            else:
                entries[name.text] = (name, self.build(value))
        return Entries(tuple(entries.values()), position)
