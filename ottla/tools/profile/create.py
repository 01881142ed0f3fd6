"""`ottla profile create NAME --bootstrap HOST:PORT [--command-config FILE]`."""

import os.path

import click

from ottla.base.errors import ConfigError
from ottla.client.bootstrap import parse_bootstrap
from ottla.client.brokers import Brokers
from ottla.tools import options, profiles
from ottla.tools.connection.client_config import configure
from ottla.tools.output import Output


@click.command("create")
@click.argument("name")
@click.option("--bootstrap", "-b", required=True, metavar="HOST:PORT", help="The cluster's address.")  # fmt: skip
@click.option("--command-config", type=options.properties_file, metavar="FILE", help="A properties file with options of Kafka's clients, for TLS and SASL.")  # fmt: skip
@click.option("--create-topics", type=click.Choice(["yes", "no"]), default="yes", show_default=True, help="Let `ottla produce` create topics.")  # fmt: skip
@click.option("--use/--no-use", default=True, show_default=True, help="Make it the current one.")
@click.option("--force", is_flag=True, help="Replace a profile of this name.")
@options.formatted
def command(
    output: Output,
    name: str,
    bootstrap: str,
    command_config: str | None,
    create_topics: str,
    use: bool,
    force: bool,
) -> None:
    """Store a cluster's address under a name, for commands without --bootstrap.

    The file is not copied: each command reads it.

    \b
    ottla profile create production --bootstrap broker1:9092,broker2:9092
    ottla profile create secured --bootstrap broker1:9093 --command-config client.properties
    """
    profiles.check_name(name)
    parse_bootstrap(bootstrap)
    config = ""
    if command_config is not None:
        config = os.path.abspath(command_config)
        # Report a wrong option now, not with the next command.
        configure(Brokers(bootstrap), config)
    known = profiles.read()
    if name in known.addresses and not force:
        raise ConfigError(
            f"profile {name!r} exists ({known.addresses[name]}): choose another name, or add --force"
        )
    current = name if use else known.current
    configs = {key: value for key, value in known.configs.items() if key != name}
    if config:
        configs[name] = config
    addresses = {**known.addresses, name: bootstrap}
    without = known.without_creation - {name} | ({name} if create_topics == "no" else set())
    profiles.write(profiles.Profiles(addresses, current, configs, without))
    output.done(
        f"Created profile {name}{'; commands use it now' if use else ''}.",
        profile=name,
        bootstrap=bootstrap,
        command_config=config or None,
        create_topics=create_topics,
        current=current,
    )
