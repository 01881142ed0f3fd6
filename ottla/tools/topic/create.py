"""`ottla topic create NAME`: create a topic, by default with the broker's defaults."""

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.topics import BROKER_DEFAULT
from ottla.client.brokers import Brokers
from ottla.operations.topics import create
from ottla.tools import options
from ottla.tools.output import Output, count_text


@click.command("create")
@click.argument("name")
@click.option(
    "--partitions",
    type=click.IntRange(min=1, max=options.INT32_MAX),
    help="Number of partitions; default: the broker's num.partitions.",
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1, max=options.INT16_MAX),
    help="Number of replicas; default: the broker's default.replication.factor.",
)
@click.option(
    "--config",
    "-c",
    multiple=True,
    metavar="KEY=VALUE",
    callback=options.parse_pairs,
    help="A topic option, like retention.ms=3600000; may be repeated.",
)
@click.option("--if-not-exists", is_flag=True, help="Succeed without changes if the topic exists.")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    config: dict[str, str],
    if_not_exists: bool,
) -> None:
    """Create a topic."""
    try:
        change = create(
            brokers,
            name,
            partitions=partitions or BROKER_DEFAULT,
            replication_factor=replication_factor or BROKER_DEFAULT,
            config=config,
        )
    except ApiError as error:
        if if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            output.done(f"Topic {name} exists.", name=name, created=False)
            return
        raise
    # Brokers report neither number to a user who may not describe the topic's configuration.
    count, factor = (int(change.after[name]) for name in ("partitions", "replication_factor"))
    is_known = count > 0
    numbers = f" with {count_text(count, 'partition')}, replication factor {factor}"
    output.done(
        f"Created topic {name}{numbers if is_known else ''}.",
        name=name,
        created=True,
        partitions=count if is_known else None,
        replication_factor=factor if is_known else None,
    )
