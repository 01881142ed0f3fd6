"""`ottla cluster elect`: elect the preferred leaders of partitions, or unclean ones (KIP-460)."""

from typing import NamedTuple

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import replicas, topics
from ottla.client.admin.replicas import ElectionType
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla.tools.topic_partitions import Partition, parse_topic_partitions

_COLUMNS = ("topic", "partition", "leader", "to", "problem")


class _Election(NamedTuple):
    """A partition that needs a leader; `to` is None if the controller chooses one.

    `problem` is the reason why the election will fail, empty if there is none.
    """

    key: Partition
    leader: int | None
    to: int | None
    problem: str


@click.command("elect")
@click.argument("topic_partitions", nargs=-1, metavar="[TOPIC[:0,1]]...", shell_complete=options.complete_topic)  # fmt: skip
@click.option("--all", "elects_all", is_flag=True, help="All partitions of the cluster.")
@click.option("--unclean", is_flag=True,
              help="Elect any running replica of partitions without a leader: records can be lost.")  # fmt: skip
@click.option("--execute", is_flag=True, help="Execute the elections (default: dry run).")
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    topic_partitions: tuple[str, ...],
    elects_all: bool,
    unclean: bool,
    execute: bool,
) -> int:
    """Elect the first replica of partitions as their leader, if it is in sync.

    TOPIC:0,1 names the partitions 0 and 1. The exit code is 1 if an election has failed, else 0.

    \b
    ottla cluster elect --all --execute
    ottla cluster elect orders:0,1 --unclean --execute
    """
    if elects_all == bool(topic_partitions):
        raise click.UsageError("Name topics or partitions, as in orders or orders:0,1, or --all.")
    elections = _needed(
        brokers,
        None if elects_all else parse_topic_partitions(brokers, topic_partitions),
        unclean=unclean,
    )
    results: dict[Partition, str] = {row.key: row.problem for row in elections}
    if execute and elections:
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        errors = replicas.try_elections(brokers, list(results), election_type=kind)
        results |= {key: _problem(error) for key, error in errors.items()}
    rows = [
        {
            "topic": row.key[0],
            "partition": row.key[1],
            "leader": row.leader,
            "to": row.to,
            "executed": execute and not results[row.key],
            "problem": results[row.key],
        }
        for row in elections
    ]
    output.rows(
        rows,
        _COLUMNS,
        empty="All of these partitions have a leader."
        if unclean
        else "All of these partitions are led by their preferred replica.",
    )
    if rows and not execute:
        note("Dry run, nothing was changed: add --execute.")
    return 1 if execute and any(results.values()) else 0


def _problem(error: ApiError | None) -> str:
    """Return an error as text, empty if the partition has the wanted leader."""
    if error is None or error.code is ErrorCode.ELECTION_NOT_NEEDED:
        return ""
    return str(error)


def _needed(brokers: Brokers, keys: list[Partition] | None, *, unclean: bool) -> list[_Election]:
    described = (
        topics.list_topics(brokers)
        if keys is None
        else [
            topics.describe_topic(brokers, name) for name in dict.fromkeys(key[0] for key in keys)
        ]
    )
    partitions = {
        (topic.name, row.partition): row for topic in described for row in topic.partitions
    }
    elections = []
    for key in partitions if keys is None else keys:
        row = partitions[key]
        leader = row.leader if row.leader >= 0 else None
        if unclean:
            if leader is None:
                is_dead = set(row.replicas) <= set(row.offline)
                problem = "none of its replicas is running" if is_dead else ""
                elections.append(_Election(key, None, None, problem))
        elif row.replicas and leader != (preferred := row.replicas[0]):
            problem = "" if preferred in row.isr else f"broker {preferred} is not in sync"
            elections.append(_Election(key, leader, preferred, problem))
    return elections
