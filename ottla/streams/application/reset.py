"""Begins an application anew (Kafka's StreamsResetter): what there is to remove, where input goes on, and doing it.

The checkpoint holds where the input was read and the stores; changelogs and repartition topics are the application's
own; the group of its name only shows the progress. Without a checkpoint the application starts at what is committed
there, if that is not its own progress (spark/query/starting_offsets.py): so positions that are asked for are committed, as Kafka's
tool does it. Input topics and output topics are left as they are.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.groups import (
    Group,
    delete_group,
    describe_group,
    list_groups,
    remove_members,
)
from ottla.client.admin.offsets import (
    CommittedOffset,
    TopicPartition,
    commit_offsets,
    committed_offsets,
)
from ottla.client.admin.topics import delete_topic, list_topics
from ottla.client.brokers import Brokers
from ottla.streams.application.election import group_of
from ottla.streams.model.names import is_internal

CHECKPOINT, GROUP, TOPIC = "checkpoint", "group", "topic"
_LEDGER = "ottla-sink-"
# The first lines of a batch in Spark's offset log: its version, and the batch's settings.
_VERSION, _HEAD_LINES = "v1", 2


@dataclass(frozen=True)
class Removal:
    """Something that is removed: a checkpoint, a group or a topic."""

    kind: str
    name: str


def plan_reset(
    brokers: Brokers, application_id: str, checkpoint: str, internal_topics: Sequence[str] = ()
) -> list[Removal]:
    """Return what a reset removes; of internal topics only those that are named, if any are.

    ApiError INVALID_REQUEST for a name that is not of an internal topic that is there.
    """
    folder = Path(checkpoint)
    groups = {application_id, group_of(application_id), *_ledgers(folder)}
    known = {each.group_id for each in list_groups(brokers)}
    found = [Removal(GROUP, name) for name in sorted(groups & known)]
    topics = [each.name for each in list_topics(brokers) if is_internal(each.name, application_id)]
    unknown = sorted(set(internal_topics) - set(topics))
    if unknown:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{unknown[0]} is no internal topic of {application_id!r}; there are: "
            f"{', '.join(topics) or 'none'}.",
        )
    found += [Removal(TOPIC, name) for name in internal_topics or topics]
    # Last, so that a reset that fails before can be repeated.
    if "://" in checkpoint or folder.is_dir():
        found.append(Removal(CHECKPOINT, checkpoint))
    return found


def running(brokers: Brokers, application_id: str) -> list[Group]:
    """Return the groups of an application that have members: its instances, or whoever reads in its name."""
    found = []
    for name in (group_of(application_id), application_id):
        try:
            found.append(describe_group(brokers, name))
        except ApiError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
    return [each for each in found if each.members]


def refuse_while_running(groups: Sequence[Group], application_id: str) -> None:
    """Raise ApiError NON_EMPTY_GROUP if there is such a group, as Kafka's tool does."""
    for each in groups:
        count = len(each.members)
        instances = "1 instance runs" if count == 1 else f"{count} instances run"
        raise ApiError(
            ErrorCode.NON_EMPTY_GROUP,
            f"{application_id!r} cannot be reset now: {instances} (group {each.group_id!r}). Close them first; one "
            "that was killed is forgotten after its session_timeout_ms, or at once with --force.",
        )


def positions_of(
    brokers: Brokers, application_id: str, checkpoint: str
) -> dict[TopicPartition, int]:
    """Return where an application is in its input: what its checkpoint says, else what its group shows."""
    shown = committed_offsets(brokers, application_id, require_stable=False)
    found = {key: each.offset for key, each in shown.items() if each.offset >= 0}
    for query in sorted(Path(checkpoint).glob("*/")):
        found |= _positions_in(query)
    return {key: offset for key, offset in found.items() if not is_internal(key[0], application_id)}


def _positions_in(query: Path) -> dict[TopicPartition, int]:
    """Return where a query's last micro-batch that was committed ended, or where it is to start."""
    done = [int(each.name) for each in (query / "commits").glob("*") if each.name.isdecimal()]
    if done:
        lines = (query / "offsets" / str(max(done))).read_text(encoding="utf-8").splitlines()
        told = lines[_HEAD_LINES:] if lines[0] == _VERSION else []
    else:
        shape = query / "ottla-topology.json"
        known = json.loads(shape.read_text(encoding="utf-8")) if shape.is_file() else {}
        told = [json.dumps(known.get("starts", {}))]
    return {
        (topic, int(partition)): offset
        for line in told
        if line.startswith("{")
        for topic, partitions in json.loads(line).items()
        # The wall clock is a topic of no broker's, which its name shows.
        if " " not in topic
        for partition, offset in partitions.items()
    }


def _ledgers(folder: Path) -> list[str]:
    """Return the groups of the sinks' ledgers: each query's id stands in its checkpoint."""
    found = []
    for each in sorted(folder.glob("*/metadata")):
        if each.is_file():
            known = json.loads(each.read_text(encoding="utf-8").splitlines()[-1])
            found.append(f"{_LEDGER}{known['id']}")
    return found


def execute_reset(
    brokers: Brokers,
    application_id: str,
    removals: Sequence[Removal],
    positions: Mapping[TopicPartition, int],
    members: Sequence[Group] = (),
) -> None:
    """Have members leave, remove, and commit positions; the checkpoint goes last.

    ApiError for a checkpoint that is not on this machine's file system, before anything is done.
    """
    for each in removals:
        if each.kind == CHECKPOINT and "://" in each.name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"The checkpoint {each.name} is not in a folder of this machine: remove it with the "
                "tools of its file system, then reset with a --state-dir that is empty.",
            )
    for group in members:
        remove_members(brokers, group, reason="the application is reset")
    for each in removals:
        if each.kind != CHECKPOINT:
            _remove(brokers, each)
    if positions:
        chosen = {key: CommittedOffset(offset) for key, offset in positions.items()}
        commit_offsets(brokers, application_id, chosen)
    for each in removals:
        if each.kind == CHECKPOINT:
            shutil.rmtree(each.name)


def _remove(brokers: Brokers, removal: Removal) -> None:
    try:
        if removal.kind == TOPIC:
            delete_topic(brokers, removal.name)
        else:
            delete_group(brokers, removal.name)
    except ApiError as error:
        if error.code not in _GONE:
            raise


_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND})
