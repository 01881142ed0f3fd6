"""`ottla profile delete NAME`."""

import click

from ottla.client.bootstrap import DEFAULT_BOOTSTRAP
from ottla.tools import options, profiles
from ottla.tools.output import Output


@click.command("delete")
@click.argument("name", shell_complete=options.complete_profile)
@options.formatted
def command(output: Output, name: str) -> None:
    """Delete a profile; the cluster is not changed."""
    known = profiles.read()
    profiles.check_known(known, name)
    remaining = {key: address for key, address in known.addresses.items() if key != name}
    current = "" if known.current == name else known.current
    configs = {key: file for key, file in known.configs.items() if key != name}
    profiles.write(profiles.Profiles(remaining, current, configs, known.without_creation - {name}))
    uses = f"; commands use {DEFAULT_BOOTSTRAP} now" if known.current == name else ""
    output.done(f"Deleted profile {name}{uses}.", deleted=name, current=current)
