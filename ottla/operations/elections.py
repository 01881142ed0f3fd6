"""Elections of the preferred leaders of partitions, or of unclean ones (KIP-460)."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.client.admin import replicas, topics
from ottla.client.admin.replicas import ElectionType
from ottla.client.brokers import Brokers

Key = tuple[str, int]


class Election(NamedTuple):
    """A partition that needs a leader; `to` is None if the controller chooses one.

    `problem` is the reason why the election will fail, empty if no reason is known.
    """

    key: Key
    leader: int | None
    to: int | None
    problem: str


def plan(brokers: Brokers, keys: Sequence[Key] | None, *, unclean: bool) -> list[Election]:
    """Return the elections that partitions need; None is all partitions of the cluster."""
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
                elections.append(Election(key, None, None, problem))
        elif row.replicas and leader != (preferred := row.replicas[0]):
            problem = "" if preferred in row.isr else f"broker {preferred} is not in sync"
            elections.append(Election(key, leader, preferred, problem))
    return elections


def execute(brokers: Brokers, keys: Sequence[Key], *, unclean: bool) -> dict[Key, str]:
    """Elect leaders; return the error of each partition as text, empty for a success.

    It is a success if another election has chosen the wanted leader before.
    """
    if not keys:
        return {}
    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    errors = replicas.try_elections(brokers, keys, election_type=kind)
    return {
        key: "" if error is None or error.code is ErrorCode.ELECTION_NOT_NEEDED else str(error)
        for key, error in errors.items()
    }
