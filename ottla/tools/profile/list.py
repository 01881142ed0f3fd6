"""`ottla profile list`."""

import click

from ottla.tools import options, profiles
from ottla.tools.output import Output


@click.command("list")
@options.formatted
def command(output: Output) -> None:
    """List the profiles; the current one is marked."""
    known = profiles.read()
    rows = [
        {
            "current": "*" if name == known.current else "",
            "profile": name,
            "bootstrap": address,
            "command_config": known.configs.get(name),
        }
        for name, address in sorted(known.addresses.items())
    ]
    output.rows(
        rows,
        ("current", "profile", "bootstrap", "command_config"),
        empty="No profiles. Create one with `ottla profile create NAME --bootstrap HOST:PORT`.",
    )
