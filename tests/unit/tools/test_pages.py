"""The commands of the pages exist, with their options; other tests run the commands of some pages."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from ottla.tools import main, options
from ottla.tools.lazy import LazyGroup
from tests.law import source

_BLOCK = re.compile(r"^```(?:sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_END = re.compile(r"^(?:\||\|\||&&|&|;|>|<)$")
# A file or a folder of the reader's.
_MISSING = "does not exist"


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the words after `ottla` of each command in the blocks of a page."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|&;<>")
            lexer.commenters = "#"
            lexer.whitespace_split = True
            words = list(lexer) if "ottla " in line else []
            while "ottla" in words:
                words = words[words.index("ottla") + 1 :]
                end = next((at for at, word in enumerate(words) if _END.match(word)), len(words))
                if end:
                    yield words[:end]


def _parse(words: list[str]) -> None:
    """Parse a command line without running it; raises click.UsageError."""
    command: click.Command = main.root
    context = click.Context(command, info_name="ottla")
    while isinstance(command, LazyGroup) and words and not words[0].startswith("-"):
        name, found, words = command.resolve_command(context, words)
        assert found is not None
        context = click.Context(found, info_name=name, parent=context)
        command = found
    command.make_context(command.name, words)


_PAGES = [source.ROOT / "README.md", *sorted((source.ROOT / "docs").glob("*.md"))]
_COMMANDS = [
    (page.name, shlex.join(words))
    for page in _PAGES
    for words in _commands(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("page", "command"), _COMMANDS)
def test_commands_of_the_pages_exist(
    page: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has the nouns, verbs, options and arguments of the page."""
    # References of `-o` and `-X` are to variables and files of the reader's.
    monkeypatch.setattr(options, "_resolve", lambda _, text: text)
    try:
        # A reference is resolved when the command runs; here its file does not exist.
        _parse(shlex.split(re.sub(r"\$\{\w+:[^}]*\}", "text", command)))
    except click.UsageError as error:
        assert _MISSING in error.format_message(), page
