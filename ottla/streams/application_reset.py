"""Begins an application anew (Kafka's application reset tool): what there is to remove, and removing it.

The checkpoint holds where the input was read and the stores; changelogs and repartition topics are the application's
own; the group of its name only shows the progress. Input topics and output topics are left as they are.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.groups import delete_group, describe_group, list_groups
from ottla.client.admin.topics import delete_topic, list_topics
from ottla.client.brokers import Brokers
from ottla.streams.election import group_of
from ottla.streams.names import is_internal

CHECKPOINT, GROUP, TOPIC = "checkpoint", "group", "topic"
_LEDGER = "ottla-sink-"


@dataclass(frozen=True)
class Removal:
    """Something that is removed: a checkpoint, a group or a topic."""

    kind: str
    name: str


def plan_reset(brokers: Brokers, application_id: str, checkpoint: str) -> list[Removal]:
    """Return what a reset removes; ApiError NON_EMPTY_GROUP while an instance runs."""
    _refuse_while_running(brokers, application_id)
    folder = Path(checkpoint)
    groups = {application_id, group_of(application_id), *_ledgers(folder)}
    known = {each.group_id for each in list_groups(brokers)}
    found = [Removal(GROUP, name) for name in sorted(groups & known)]
    topics = [each.name for each in list_topics(brokers)]
    found += [Removal(TOPIC, name) for name in topics if is_internal(name, application_id)]
    # Last, so that a reset that fails before can be repeated.
    if "://" in checkpoint or folder.is_dir():
        found.append(Removal(CHECKPOINT, checkpoint))
    return found


def _refuse_while_running(brokers: Brokers, application_id: str) -> None:
    for name in (group_of(application_id), application_id):
        try:
            members = describe_group(brokers, name).members
        except ApiError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            continue
        if members:
            running = "1 instance runs" if len(members) == 1 else f"{len(members)} instances run"
            raise ApiError(
                ErrorCode.NON_EMPTY_GROUP,
                f"{application_id!r} cannot be reset now: {running} (group {name!r}). Close them first; one that "
                "was killed is forgotten after its session_timeout_ms.",
            )


def _ledgers(folder: Path) -> list[str]:
    """Return the groups of the sinks' ledgers: each query's id stands in its checkpoint."""
    found = []
    for each in sorted(folder.glob("*/metadata")):
        if each.is_file():
            known = json.loads(each.read_text(encoding="utf-8").splitlines()[-1])
            found.append(f"{_LEDGER}{known['id']}")
    return found


def execute_reset(brokers: Brokers, removals: list[Removal]) -> None:
    """Remove; ApiError for a checkpoint that is not on this machine's file system, before anything is done."""
    for each in removals:
        if each.kind == CHECKPOINT and "://" in each.name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"The checkpoint {each.name} is not in a folder of this machine: remove it with the "
                "tools of its file system, then name a folder that is empty with --state-dir.",
            )
    for each in removals:
        if each.kind == CHECKPOINT:
            shutil.rmtree(each.name)
            continue
        try:
            if each.kind == TOPIC:
                delete_topic(brokers, each.name)
            else:
                delete_group(brokers, each.name)
        except ApiError as error:
            if error.code not in _GONE:
                raise


_GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND})
