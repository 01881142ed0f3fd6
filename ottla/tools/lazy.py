"""Groups of commands that import a command's module when the command is called.

`ottla --help` and the completion of command names import no module of a command. A command that
works with a large library or with the broker defers that import until its arguments are valid, so
that its own `--help` and its usage errors are fast (`loading.deferred`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ottla.base.loading import deferred_module, load

# Only a misspelt command needs it.
if TYPE_CHECKING:
    import difflib
else:
    difflib = deferred_module("difflib")

# Parameters whose empty text is a value. Any other text names something: an empty one comes from a
# variable of a shell that is not set, and must not be read as the default.
MAY_BE_BLANK = frozenset(
    {"delimiter", "format", "headers", "key", "key_delimiter", "key_regex", "metrics", "value",
     "value_regex"}
)  # fmt: skip
# Python refuses to convert thousands of digits; no number of a command needs more than these.
_DIGITS_MAX = 40
_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")


class Verb(NamedTuple):
    """The module that defines `command`, and the command's line in the list of commands."""

    module: str
    help: str


class LazyGroup(click.Group):
    """A click group over a table of commands, listed in the table's order."""

    def __init__(self, name: str, verbs: Mapping[str, Verb], *, help: str) -> None:
        super().__init__(name, help=help, no_args_is_help=True)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands without importing them."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or return None if no command has that name."""
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        command = load(verb.module, "command")
        assert isinstance(command, click.Command)
        refuse_unusable_texts(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was called; the error for an unknown one lists the known ones."""
        name = args[0]
        if name not in self.verbs and not name.startswith("-") and not ctx.resilient_parsing:
            similar = difflib.get_close_matches(name.lower(), self.verbs, n=1)
            meant = f" Did you mean {similar[0]!r}?" if similar else ""
            ctx.fail(f"No such command {name!r}.{meant} Commands: {', '.join(self.verbs)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in self.verbs.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names from the table."""
        return [
            CompletionItem(name, help=verb.help)
            for name, verb in self.verbs.items()
            if name.startswith(incomplete)
        ] + click.Command.shell_complete(self, ctx, incomplete)


def names_something(parameter: click.Parameter) -> bool:
    """Return True if a parameter is a text that must not be blank."""
    is_text = isinstance(parameter.type, click.types.StringParamType | click.Path)
    return is_text and parameter.name not in MAY_BE_BLANK


def refuse_unusable_texts(command: click.Command) -> None:
    """Let a command, or a group's commands, refuse texts that no value can have; idempotent."""
    for nested in command.commands.values() if isinstance(command, click.Group) else ():
        refuse_unusable_texts(nested)
    for parameter in command.params:
        if "process_value" not in vars(parameter):
            # Before the conversion, which makes an empty text the path of the current folder.
            checked = partial(_checked, parameter, parameter.process_value)
            vars(parameter)["process_value"] = checked


def _checked(
    parameter: click.Parameter,
    process: Callable[[click.Context, Any], Any],
    context: click.Context,
    value: Any,
) -> Any:
    is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    for text in _texts(value):
        problem = _problem(parameter, text)
        if is_given and not problem and names_something(parameter) and not text.strip():
            problem = "it must not be blank"
        if problem:
            raise click.BadParameter(problem, context, parameter)
    return process(context, value)


def _texts(value: Any) -> Iterator[str]:
    """Return the texts of a value: of an option with several values, or that is repeated, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _texts(item)


def _problem(parameter: click.Parameter, text: str) -> str:
    """Return the reason why a text is no value of this type; "" for a possible value."""
    if isinstance(parameter.type, click.Path | click.File):
        # The name of a file may have any other byte.
        return f"{text!r} has a NUL character: no file has such a name" if "\0" in text else ""
    if not _is_unicode(text):
        return f"{text!r} is not UTF-8 text: write it in UTF-8"
    is_number = isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType)
    if is_number and not (text.isascii() and "_" not in text and len(text) <= _DIGITS_MAX):
        return f"{text!r} is not a number: write at most {_DIGITS_MAX} of the digits 0 to 9"
    # click says "is not a valid integer range" of a word.
    if isinstance(parameter.type, click.types.IntParamType) and not _WHOLE.fullmatch(text):
        return f"{text!r} is not a whole number: write digits, as in 3"
    return ""


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
