"""`ottla profile use NAME`."""

from dataclasses import replace

import click

from ottla.tools import options, profiles
from ottla.tools.output import Output


@click.command("use")
@click.argument("name", required=False, shell_complete=options.complete_profile)
@click.option("--none", "is_none", is_flag=True, help="Use no profile.")
@options.formatted
def command(output: Output, name: str | None, is_none: bool) -> None:
    """Make a profile the current one."""
    if (name is None) != is_none:
        raise click.UsageError("Name a profile, or give --none.")
    known = profiles.read()
    if name is not None:
        profiles.check_known(known, name)
    profiles.write(replace(known, current=name or ""))
    text = f"Commands use {name} ({known.addresses[name]})." if name else "No profile is used."
    output.done(text, current=name or "")
