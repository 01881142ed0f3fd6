"""Tools with a subcommand, which argparse4j reads: `kafka-cluster cluster-id --bootstrap-server …`."""

from collections.abc import Sequence

from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import Options
from ottla.tools.scripts.printing import out


def first_as_option(
    command_line: Sequence[str], known: Sequence[str], with_value: Sequence[str]
) -> list[str]:
    """Move the subcommand, wherever it is, into the option `--action`.

    UsageError if the first word that is no option is no subcommand.
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
            return ["--action", word, *command_line[:at], *command_line[at + 1 :]]
        else:
            listed = ", ".join(f"'{action}'" for action in known)
            raise UsageError(
                f"invalid choice: '{word}' (choose from {listed})", is_parse_error=True
            )
    return list(command_line)


def action_of(options: Options) -> str:
    """Return the subcommand; UsageError if there is none."""
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
