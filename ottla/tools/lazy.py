"""A command group that knows its verbs by name and line of help, and imports one when it is called.

`ottla --help` and completion of verbs import none of them: that is what keeps them fast.
"""

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem


class Verb(NamedTuple):
    """The module whose `command` it is, and its line in the list of verbs."""

    module: str
    help: str


class LazyGroup(click.Group):
    """A click group over a table of verbs, shown in the table's order."""

    def __init__(self, name: str, verbs: Mapping[str, Verb], *, help: str) -> None:
        super().__init__(name, help=help, no_args_is_help=True)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names without importing anything."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one verb, or None."""
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        command = importlib.import_module(verb.module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb that was called; a wrong one is answered with the right ones."""
        name = args[0]
        if name not in self.verbs and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"There is no command {name!r} here; these are: {', '.join(self.verbs)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in self.verbs.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete verbs from the table."""
        return [
            CompletionItem(name, help=verb.help)
            for name, verb in self.verbs.items()
            if name.startswith(incomplete)
        ] + click.Command.shell_complete(self, ctx, incomplete)
