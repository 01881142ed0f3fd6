"""Resets an application (Kafka's StreamsResetter): what to remove, where the input resumes, and
doing it.

The checkpoint has the positions in the input and the state stores. Changelogs and repartition
topics belong to the application. The group of its name only shows the progress. An application
without a checkpoint starts at the positions that are committed in this group, unless they are its
own progress (spark/query/starting_offsets.py). Requested positions are therefore committed, as
Kafka's tool does. Input and output topics are not changed.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.client.admin.groups import Group, describe_group, list_groups
from ottla.client.admin.offsets import (
    CommittedOffset,
    TopicPartition,
    commit_offsets,
    committed_offsets,
)
from ottla.client.admin.topics import list_topics
from ottla.client.brokers import Brokers
from ottla.streams.application.election import group_of
from ottla.streams.model.names import is_internal

# Only an executed reset needs them.
if TYPE_CHECKING:
    from ottla.operations import topics as topic_changes
    from ottla.operations.offsets import groups as group_changes
else:
    topic_changes = deferred_module("ottla.operations.topics")
    group_changes = deferred_module("ottla.operations.offsets.groups")

CHECKPOINT, GROUP, TOPIC = "checkpoint", "group", "topic"
_LEDGER = "ottla-sink-"
# The first lines of a batch in Spark's offset log: its version, and the settings of the batch.
_VERSION, _HEAD_LINES = "v1", 2


@dataclass(frozen=True)
class Removal:
    """A checkpoint, group or topic that a reset removes."""

    kind: str
    name: str


def plan_reset(
    brokers: Brokers, application_id: str, checkpoint: str, internal_topics: Sequence[str] = ()
) -> list[Removal]:
    """Return what a reset removes. `internal_topics` limits it to the named internal topics.

    Raises ApiError INVALID_REQUEST if a name is not an existing internal topic.
    """
    folder = Path(checkpoint)
    groups = {application_id, group_of(application_id), *_ledgers(folder)}
    existing = {listed.group_id for listed in list_groups(brokers)}
    results = [Removal(GROUP, name) for name in sorted(groups & existing)]
    topics = [
        listed.name for listed in list_topics(brokers) if is_internal(listed.name, application_id)
    ]
    unknown = sorted(set(internal_topics) - set(topics))
    if unknown:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{unknown[0]} is not an internal topic of {application_id!r}; there are: "
            f"{', '.join(topics) or 'none'}.",
        )
    results += [Removal(TOPIC, name) for name in internal_topics or topics]
    # The checkpoint is last, so that a reset that fails before can be repeated.
    if "://" in checkpoint or folder.is_dir():
        results.append(Removal(CHECKPOINT, checkpoint))
    return results


def running(brokers: Brokers, application_id: str) -> list[Group]:
    """Return the groups of an application that have members: its instances or other consumers."""
    results = []
    for name in (group_of(application_id), application_id):
        try:
            results.append(describe_group(brokers, name))
        except ApiError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
    return [group for group in results if group.members]


def refuse_while_running(groups: Sequence[Group], application_id: str) -> None:
    """Raise ApiError NON_EMPTY_GROUP if there is a group with members, as Kafka's tool does."""
    for group in groups:
        count = len(group.members)
        instances = "1 instance runs" if count == 1 else f"{count} instances run"
        raise ApiError(
            ErrorCode.NON_EMPTY_GROUP,
            f"{application_id!r} cannot be reset now: {instances} (group {group.group_id!r}). Close them first; an "
            "instance that was killed is removed after its session_timeout_ms, or immediately with --force.",
        )


def positions_of(
    brokers: Brokers, application_id: str, checkpoint: str
) -> dict[TopicPartition, int]:
    """Return the input positions of an application: from its checkpoint, else from its group."""
    committed = committed_offsets(brokers, application_id, require_stable=False)
    results = {key: result.offset for key, result in committed.items() if result.offset >= 0}
    for query in sorted(Path(checkpoint).glob("*/")):
        results |= _positions_in(query)
    return {
        key: offset for key, offset in results.items() if not is_internal(key[0], application_id)
    }


def _positions_in(query: Path) -> dict[TopicPartition, int]:
    """Return the end of the last committed micro-batch of a query, or its starting offsets."""
    batch_ids = [
        int(commit.name) for commit in (query / "commits").glob("*") if commit.name.isdecimal()
    ]
    if batch_ids:
        lines = (query / "offsets" / str(max(batch_ids))).read_text(encoding="utf-8").splitlines()
        offset_lines = lines[_HEAD_LINES:] if lines[0] == _VERSION else []
    else:
        shape = query / "ottla-topology.json"
        document = json.loads(shape.read_text(encoding="utf-8")) if shape.is_file() else {}
        offset_lines = [json.dumps(document.get("starts", {}))]
    return {
        (topic, int(partition)): offset
        for line in offset_lines
        if line.startswith("{")
        for topic, partitions in json.loads(line).items()
        # The wall clock is a source but not a topic; its name has a space. Topic ids have an "@".
        if " " not in topic and not topic.startswith("@")
        for partition, offset in partitions.items()
    }


def _ledgers(folder: Path) -> list[str]:
    """Return the groups of the sinks' ledgers; they contain the query ids of the checkpoint."""
    ledgers = []
    for file in sorted(folder.glob("*/metadata")):
        if file.is_file():
            metadata = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
            ledgers.append(f"{_LEDGER}{metadata['id']}")
    return ledgers


def execute_reset(
    brokers: Brokers,
    application_id: str,
    removals: Sequence[Removal],
    positions: Mapping[TopicPartition, int],
    members: Sequence[Group] = (),
) -> None:
    """Remove members, groups and topics, and commit positions; then remove the checkpoint.

    Raises ApiError, before any change, if the checkpoint is not on this machine's file system.
    """
    for removal in removals:
        if removal.kind == CHECKPOINT and "://" in removal.name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"The checkpoint {removal.name} is not in a folder of this machine: remove it with the "
                "tools of its file system, then reset with a --state-dir that is empty.",
            )
    for group in members:
        group_changes.remove_members(brokers, group, reason="the application is reset")
    for removal in removals:
        if removal.kind != CHECKPOINT:
            _remove(brokers, removal)
    if positions:
        chosen = {key: CommittedOffset(offset) for key, offset in positions.items()}
        commit_offsets(brokers, application_id, chosen)
    for removal in removals:
        if removal.kind == CHECKPOINT:
            shutil.rmtree(removal.name)


def _remove(brokers: Brokers, removal: Removal) -> None:
    try:
        if removal.kind == TOPIC:
            topic_changes.delete(brokers, removal.name)
        else:
            group_changes.delete_group(brokers, removal.name)
    except ApiError as error:
        if error.code not in _GONE:
            raise


_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND})
