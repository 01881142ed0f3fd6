"""Partitions as users type them: `orders` (all of its partitions), `orders:0,1`."""

from collections.abc import Collection, Sequence

import click

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.tools.text_files import is_number

Partition = tuple[str, int]


def parse_topic_partitions(brokers: Brokers, topic_partitions: Sequence[str]) -> list[Partition]:
    """Return the partitions, each once; ApiError if one does not exist, UsageError for another
    form.
    """
    keys: list[Partition] = []
    for argument in topic_partitions:
        name, colon, numbers = argument.partition(":")
        known = [row.partition for row in topics.describe_topic(brokers, name).partitions]
        if not colon:
            keys += [(name, number) for number in known]
            continue
        if not all(is_number(part.strip(), 32) for part in numbers.split(",")):
            raise click.UsageError(f"invalid topic {argument!r}: use the form orders:0,1")
        for number in (int(part) for part in numbers.split(",")):
            check_partition(name, number, known)
            keys.append((name, number))
    return list(dict.fromkeys(keys))


def check_partition(topic: str, number: int, known: Collection[int]) -> None:
    """Raise ApiError if a topic with the partitions `known` lacks this one."""
    if number not in known:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Topic {topic!r} has no partition {number}, only 0 to {len(known) - 1}.",
        )
