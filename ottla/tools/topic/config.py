"""`ottla topic config NAME`: show a topic's configuration, set options or reset them."""

import click

from ottla.client.admin import configs
from ottla.client.brokers import Brokers
from ottla.operations.configs import alter
from ottla.tools import options
from ottla.tools.output import Output


@click.command("config")
@click.argument("name", shell_complete=options.complete_topic)
@click.option(
    "--set",
    "assign",
    multiple=True,
    metavar="KEY=VALUE",
    callback=options.parse_pairs,
    help="Set an option; may be repeated.",
)
@click.option(
    "--unset", multiple=True, metavar="KEY", help="Reset an option to its default; may be repeated."
)
@click.option("--all", "show_all", is_flag=True, help="Show defaults, too.")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    name: str,
    assign: dict[str, str],
    unset: tuple[str, ...],
    show_all: bool,
) -> None:
    """Show or change the configuration of a topic."""
    topic = configs.Resource(configs.ResourceType.TOPIC, name)
    if assign or unset:
        _check_names(brokers, topic, unset)
        alter(brokers, topic, assign, unset)
        done = [f"{key}={value}" for key, value in assign.items()]
        done += [f"{key} to its default" for key in unset]
        output.done(f"Topic {name}: set {', '.join(done)}.", topic=name, set=assign, unset=unset)
        return
    rows = [
        {
            "name": entry.name,
            "value": entry.value,
            "source": entry.source.name,
            "read_only": entry.is_read_only,
            "documentation": entry.documentation,
        }
        for entry in configs.describe_config(brokers, topic)
        if show_all or entry.source is configs.ConfigSource.DYNAMIC_TOPIC_CONFIG
    ]
    output.rows(
        rows,
        ("name", "value", "source"),
        empty=f"Topic {name} has the broker's defaults; --all shows them, --set changes one.",
    )


def _check_names(brokers: Brokers, topic: configs.Resource, unset: tuple[str, ...]) -> None:
    """Raise a usage error for options that do not exist: the broker deletes them without one."""
    if not unset:
        return
    known = {entry.name for entry in configs.describe_config(brokers, topic)}
    for name in unset:
        if name not in known:
            raise click.BadParameter(
                f"{name!r} is not an option of topics: `ottla topic config {topic.name} --all` "
                "lists them",
                param_hint="--unset",
            )
