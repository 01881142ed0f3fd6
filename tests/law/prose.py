"""Reads the prose of Python files and pages, and counts the words that CONTRIBUTING.md asks to
avoid.

A figure is a rate: matches per 1 000 words, or, for sentences and docstrings, a share in percent.
Run as a program it prints the figures of the given folders: `python -m tests.law.prose ottla
tests/sim`.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.law import source

T = TypeVar("T")

# Each pattern has a plainer form, which the failing test names.
PATTERNS: dict[str, tuple[re.Pattern[str], str]] = {
    "tell": (re.compile(r"\b(tells?|told|telling)\b", re.I), "report, return, raise, say"),
    "what": (
        re.compile(r"(?:^|[.:;] )What(?:ever)? (?!if\b)[^.?:]*(?=[.:]|$)", re.M),
        "the noun itself as the subject",
    ),
    "where": (
        re.compile(
            r"(?:^|[.:;] )Where [^.?]*(?=[.]|$)"
            r"|\bwhere (?:it|that|there|this|none|one|nothing|something|they) "
            r"(?:is|are|has|have|was|were|can|cannot|does|do|did|may)\b",
            re.M,
        ),
        "if (a condition) or when (a time)",
    ),
    "nobody": (
        re.compile(r"\b(somebody|nobody|whoever|anybody|everybody)\b", re.I),
        "the broker, the client, the caller",
    ),
    "anew": (re.compile(r"\banew\b", re.I), "again, from the beginning"),
    "stands": (
        re.compile(r"\b(stands?|stood) (?:for|in|there|on|at|beside|behind|before)\b", re.I),
        "is, means, is stored in",
    ),
    "go on": (re.compile(r"\b(goes|go|going|went) on\b", re.I), "continue, resume"),
    "passive": (
        re.compile(r"\b(?:is|are|was|were|be|been) (?:asked|seen to|waited for|looked at)\b", re.I),
        "name the actor and let it act",
    ),
    "come of": (
        re.compile(
            r"\b(?:comes?|came) of\b|\bhanded (?:on|over|out)\b|\bmend(?:s|ed|ing)?\b", re.I
        ),
        "results, pass, fix",
    ),
    "there is none": (
        re.compile(
            r"\bthere (?:is|are|was|were) (?:none|nothing)\b|\b(?:has|have|had) none\b", re.I
        ),
        "name what is absent: no record, no timestamp",
    ),
    "those of": (
        re.compile(r"\b(?:those|that) of\b", re.I),
        "the noun again, or a genitive: the client's options",
    ),
    "answer": (re.compile(r"\banswer(?:s|ed|ing)?\b", re.I), "respond, return; a response"),
    "meanwhile": (
        re.compile(r"\bmeanwhile\b", re.I),
        "the time itself: during the copy, before the write, since it was read",
    ),
}
LONG_SENTENCE_WORDS = 25
# A first line that needs the function's name to be read.
_FRAGMENT = re.compile(
    r"^(?:Whether|What|Who|Whom|Whose|That|Where|How|Until|Else|As|Like|Because|But|And|Or|Of)\b"
    r"|^[a-z]"
)
_PLACEHOLDER = re.compile(r"\{\w*\}")
_CODE = re.compile(r"`[^`]*`|https?://\S+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])|\n\s*\n|\n\s*(?=[-*|] )")
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


class Prose(NamedTuple):
    """The prose of some files: one item per docstring, comment block or paragraph."""

    texts: list[str]
    docstrings: list[str]

    def figures(self) -> dict[str, float]:
        """Return every figure of this prose, by the name of its pattern."""
        plain = [_CODE.sub("x", text) for text in self.texts]
        words = max(1, sum(len(_WORD.findall(text)) for text in plain))
        figures = {
            name: 1000 * sum(len(pattern.findall(text)) for text in plain) / words
            for name, (pattern, _) in PATTERNS.items()
        }
        lengths = [len(_WORD.findall(item)) for item in sentences(plain)]
        figures["long sentences"] = 100 * _share(lengths, lambda n: n > LONG_SENTENCE_WORDS)
        figures["fragments"] = 100 * _share(self.docstrings, lambda s: bool(_FRAGMENT.match(s)))
        return figures


def _share(items: Sequence[T], is_counted: Callable[[T], bool]) -> float:
    return sum(map(is_counted, items)) / max(1, len(items))


def sentences(texts: list[str]) -> Iterator[str]:
    """Yield the sentences of the texts; a blank line or a bullet ends one, too."""
    for text in texts:
        yield from (part for part in _SENTENCE_END.split(text) if _WORD.search(part))


def of_python(texts: dict[str, str]) -> Prose:
    """Return docstrings and comments of Python files."""
    prose = Prose([], [])
    for text in texts.values():
        for docstring in docstrings(source.parse(text)):
            prose.texts.append(docstring)
            prose.docstrings.append(docstring.strip())
        prose.texts.extend(comments(text))
    return prose


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield every docstring below a module."""
    for node in source.nodes(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring


def comments(text: str) -> Iterator[str]:
    """Yield blocks of comments; lines that follow each other are one block."""
    block: list[str] = []
    last_line = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.string.lstrip("# ")
        if line.startswith(("type:", "noqa", "pragma")):
            continue
        if block and token.start[0] != last_line + 1:
            yield " ".join(block)
            block = []
        block.append(line)
        last_line = token.start[0]
    if block:
        yield " ".join(block)


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the strings users may see, with their lines: three words or more, no docstring."""
    skipped = set()
    for node in source.nodes(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            skipped.update(
                id(item.value)
                for item in body
                if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
            )
        if isinstance(node, ast.JoinedStr):
            skipped.update(map(id, node.values))
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            text = "".join(map(str, parts))
            if len(_WORD.findall(text)) > 2:
                yield node.lineno, _PLACEHOLDER.sub("x", text)
    for node in source.nodes(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in skipped and len(_WORD.findall(node.value)) > 2:
            yield node.lineno, _PLACEHOLDER.sub("x", node.value)


def of_pages(texts: dict[str, str]) -> Prose:
    """Return the paragraphs of Markdown pages, without code blocks."""
    plain = [re.sub(r"```.*?```", "", text, flags=re.S) for text in texts.values()]
    return Prose([part for text in plain for part in re.split(r"\n\s*\n", text)], [])


def main() -> None:
    """Print the figures of the folders that are named on the command line."""
    for name in sys.argv[1:]:
        files = Path(name).rglob("*.py")
        texts = {str(path): path.read_text(encoding="utf-8", errors="replace") for path in files}
        pages = {str(path): path.read_text("utf-8") for path in Path(name).glob("*.md")}
        prose = of_python(texts) if texts else of_pages(pages)
        figures = "  ".join(f"{key} {value:.2f}" for key, value in prose.figures().items())
        print(f"{name}: {figures}")


if __name__ == "__main__":
    main()
