"""`ottla transaction abort`: abort a transaction through its coordinator, or one that hangs.

Not done: a producer cannot be named by its id and epochs, which brokers of Apache Kafka before 3.0
need.
"""

import click

from ottla.client.admin import transactions
from ottla.client.brokers import Brokers
from ottla.operations.transactions import abort, abort_hanging, hanging_producer
from ottla.tools import options
from ottla.tools.output import Output, is_terminal
from ottla.tools.topic_partitions import Partition, parse_topic_partitions


@click.command("abort")
@click.argument("transactional_id", required=False, shell_complete=options.complete_transactional_id)  # fmt: skip
@click.option("--partition", metavar="TOPIC:N", shell_complete=options.complete_topic,
              help="The partition of a transaction that hangs.")  # fmt: skip
@click.option("--start-offset", type=click.IntRange(min=0), metavar="OFFSET",
              help="The first offset of a transaction that hangs.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only show what would be aborted.")
@options.yes
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    transactional_id: str | None,
    partition: str | None,
    start_offset: int | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Abort the transaction of a transactional id and fence its producer, or abort a transaction
    that no coordinator knows in one partition.

    \b
    ottla transaction abort payments
    ottla transaction abort --partition orders:0 --start-offset 42
    """
    is_asking = not (yes or dry_run) and is_terminal()
    if transactional_id is not None and partition is None and start_offset is None:
        described = transactions.describe_transaction(brokers, transactional_id)
        state = described.state
        if is_asking:
            question = (
                f"Abort the transaction of {transactional_id} ({state}) and fence its producer?"
            )
            click.confirm(question, abort=True, err=True)
        if not dry_run:
            state = abort(brokers, described).before["state"]
        verb = "Dry run: would fence" if dry_run else "Fenced"
        output.done(
            f"{verb} the producer of {transactional_id}, whose transaction was {state}.",
            transactional_id=transactional_id,
            state=state,
            executed=not dry_run,
        )
        return
    if transactional_id is not None or partition is None or start_offset is None:
        raise click.UsageError("Give a transactional id, or both --partition and --start-offset.")
    key = _parsed(brokers, partition)
    producer = hanging_producer(brokers, key, start_offset)
    name = f"{key[0]}-{key[1]}"
    if is_asking:
        click.confirm(f"Abort the transaction at offset {start_offset} of {name}?", abort=True, err=True)  # fmt: skip
    if not dry_run:
        abort_hanging(brokers, key, producer)
    verb = "Dry run: would abort" if dry_run else "Aborted"
    output.done(
        f"{verb} the transaction of producer {producer.producer_id} at offset {start_offset} of "
        f"{name}.",
        topic=key[0],
        partition=key[1],
        start_offset=start_offset,
        producer_id=producer.producer_id,
        executed=not dry_run,
    )


def _parsed(brokers: Brokers, text: str) -> Partition:
    keys = parse_topic_partitions(brokers, [text]) if ":" in text else []
    if len(keys) != 1:
        raise click.UsageError(f"--partition {text}: name one partition, as in orders:0.")
    return keys[0]
