"""`ottla profile create NAME --bootstrap HOST:PORT`."""

import click

from ottla.base.errors import ConfigError
from ottla.client.bootstrap import parse_bootstrap
from ottla.tools import options, profiles
from ottla.tools.output import Output


@click.command("create")
@click.argument("name")
@click.option("--bootstrap", "-b", required=True, metavar="HOST:PORT", help="The cluster's address.")  # fmt: skip
@click.option("--use/--no-use", default=True, show_default=True, help="Make it the current one.")
@click.option("--force", is_flag=True, help="Replace a profile of this name.")
@options.formatted
def command(output: Output, name: str, bootstrap: str, use: bool, force: bool) -> None:
    """Store a cluster's address under a name, for commands without --bootstrap.

    \b
    ottla profile create production --bootstrap broker1:9092,broker2:9092
    """
    profiles.check_name(name)
    parse_bootstrap(bootstrap)
    known = profiles.read()
    if name in known.addresses and not force:
        raise ConfigError(
            f"profile {name!r} exists ({known.addresses[name]}): choose another name, or add --force"
        )
    current = name if use else known.current
    profiles.write(profiles.Profiles({**known.addresses, name: bootstrap}, current))
    output.done(
        f"Created profile {name}{'; commands use it now' if use else ''}.",
        profile=name,
        bootstrap=bootstrap,
        current=current,
    )
