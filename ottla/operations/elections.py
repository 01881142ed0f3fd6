"""Elections of the preferred leaders of partitions, or of unclean ones (KIP-460)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import replicas, topics
from ottla.client.admin.replicas import ElectionType
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change, if_allowed, if_possible

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


class Elected(NamedTuple):
    """The change of leaders, and the result of each partition: None is a success."""

    change: Change
    results: dict[Key, ApiError | None]

    @property
    def errors(self) -> dict[Key, str]:
        """The errors as text, empty also if another election has chosen the wanted leader."""
        return {key: _text(error) for key, error in self.results.items()}


def execute(
    brokers: Brokers, elections: Sequence[Election], *, unclean: bool, cluster: str = ""
) -> Elected:
    """Elect the leaders of a plan; the change has those that were elected.

    It is a success if another election has chosen the wanted leader before.
    """
    if not elections:
        return Elected(_change([], {}, {}, unclean=unclean, cluster=cluster), {})
    keys = [row.key for row in elections]
    results = replicas.try_elections(brokers, keys, election_type=_kind(unclean))
    before = {row.key: row.leader for row in elections}
    elected = [key for key in keys if not _text(results.get(key))]
    after = if_possible(lambda: _leaders(brokers, elected)) or {}
    return Elected(_change(elected, before, after, unclean=unclean, cluster=cluster), results)


def try_elect(
    brokers: Brokers, keys: Sequence[Key] | None, *, unclean: bool, cluster: str = ""
) -> Elected:
    """Elect leaders of these partitions without a plan, or of all, and return each result.

    The change names the partitions with a new leader, not the leaders, which are not read.
    """
    results = replicas.try_elections(brokers, keys, election_type=_kind(unclean))
    elected = [key for key, error in results.items() if error is None]
    change = _change(elected, {}, {}, unclean=unclean, cluster=cluster)
    names = tuple(f"{topic}-{number}" for topic, number in elected)
    return Elected(replace(change, notes=names), results)


def elect(
    brokers: Brokers, keys: Sequence[Key] | None, *, unclean: bool, cluster: str = ""
) -> Change:
    """Elect leaders of these partitions without a plan, or of all; ApiError if one fails."""
    before = if_allowed(lambda: _leaders(brokers, keys)) or {}
    elected = sorted(replicas.elect_leaders(brokers, keys, election_type=_kind(unclean)))
    after = if_possible(lambda: _leaders(brokers, elected)) or {}
    return _change(elected, before, after, unclean=unclean, cluster=cluster)


def _text(error: ApiError | None) -> str:
    is_done = error is None or error.code is ErrorCode.ELECTION_NOT_NEEDED
    return "" if is_done else str(error)


def _kind(unclean: bool) -> ElectionType:
    return ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED


def _leaders(brokers: Brokers, keys: Sequence[Key] | None) -> dict[Key, int | None]:
    """Return the leaders of the topics of partitions, or of all; unknown topics are left out."""
    if keys is not None:
        names = {key[0] for key in keys}
        leaders = brokers.retry(lambda: brokers.known_leaders(names, skips_unknown=True))
    else:
        leaders = {
            (topic.name, row.partition): row.leader
            for topic in topics.list_topics(brokers)
            for row in topic.partitions
        }
    return {key: None if leader < 0 else leader for key, leader in leaders.items()}


def _change(
    elected: Sequence[Key],
    before: Mapping[Key, int | None],
    after: Mapping[Key, int | None],
    *,
    unclean: bool,
    cluster: str,
) -> Change:
    def leaders(known: Mapping[Key, int | None]) -> dict[str, str]:
        return {
            f"{key[0]}-{key[1]}": "none" if known[key] is None else str(known[key])
            for key in elected
            if key in known
        }

    return Change(
        cluster,
        "partition.elect-unclean-leader" if unclean else "partition.elect-preferred-leader",
        f"{len(elected)} partitions",
        before=leaders(before),
        after=leaders(after),
    )
