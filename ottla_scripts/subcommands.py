"""Tools with a subcommand, which argparse4j reads: `kafka-cluster cluster-id --bootstrap-server …`."""

from collections.abc import Sequence
from typing import NoReturn

from ottla_scripts.exits import UsageError
from ottla_scripts.flags import COMMON, Options
from ottla_scripts.printing import out


def first_as_option(
    command_line: Sequence[str],
    known: Sequence[str],
    with_value: Sequence[str],
    *,
    of_tool: Sequence[str] | None = None,
) -> list[str]:
    """Move the subcommand, wherever it is, into the option `--action`.

    `of_tool` are the options that must precede the subcommand; all others must follow it. By
    default both may do either. UsageError if the first word that is no option is no subcommand, or
    if an option is on the wrong side.
    """
    skips = False
    for at, word in enumerate(command_line):
        if skips:
            skips = False
        elif word.startswith("-"):
            # A long option may be abbreviated; `--name=value` has its value already.
            name = word.lstrip("-")
            skips = name in with_value or (
                word.startswith("--") and any(option.startswith(name) for option in with_value)
            )
        elif word in known:
            before, behind = command_line[:at], command_line[at + 1 :]
            if of_tool is not None:
                _check_sides(before, behind, of_tool)
            return ["--action", word, *before, *behind]
        else:
            listed = ", ".join(f"'{action}'" for action in known)
            raise UsageError(
                f"invalid choice: '{word}' (choose from {listed})", is_parse_error=True
            )
    return list(command_line)


def _check_sides(before: Sequence[str], behind: Sequence[str], of_tool: Sequence[str]) -> None:
    """Raise UsageError for an option on the wrong side of the subcommand."""
    for word in before:
        name = word[2:].partition("=")[0]
        if word.startswith("--") and not any(
            option.startswith(name) for option in (*of_tool, *COMMON)
        ):
            _refuse(word)
    for word in behind:
        if word.startswith("--") and word[2:].partition("=")[0] in of_tool:
            _refuse(word)


def _refuse(word: str) -> NoReturn:
    text = f"unrecognized arguments: '{word.partition('=')[0]}'"
    raise UsageError(text, is_parse_error=True)


def action_of(options: Options) -> str:
    """Return the subcommand; UsageError if it is missing."""
    action = options["action"]
    if action is None:
        raise UsageError("too few arguments", is_parse_error=True)
    return str(action)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns as ToolsUtils.prettyPrintTable does: padded, each with a tab behind it."""
    lines = [list(heads), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    for line in lines:
        out("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)))
