"""Lists the applications of a cluster, their state and instances (kafka-streams-groups).

An application on Spark commits its progress in the group of its name, with a mark in the metadata.
Its instances are the members of the group `<application id>-drivers`; their assignment is the
result of the election. The workers of a local application are members of the group of its name, and
commit the times of its tasks, as Kafka Streams does.
"""

import json
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.groups import (
    Group,
    Member,
    describe_classic_groups,
    describe_group,
    list_groups,
)
from ottla.client.admin.offsets import PROGRESS, committed_offsets
from ottla.client.brokers import Brokers
from ottla.streams.application.election import PROTOCOL_TYPE, Candidate, ElectionResult, group_of
from ottla.streams.application.task_members import ASSIGNOR, task_instances
from ottla.streams.model import committed_times

_DRIVERS = group_of("")
_CONSUMER = "consumer"
RUNNING, NOT_RUNNING = "RUNNING", "NOT_RUNNING"


@dataclass(frozen=True)
class Instance:
    """An instance: how it describes itself, its host, and whether it is active."""

    candidate: Candidate
    client_host: str
    is_active: bool
    tasks: tuple[str, ...] = ()
    """The tasks of an instance of a local application."""
    standby_tasks: tuple[str, ...] = ()


def application_ids(brokers: Brokers) -> list[str]:
    """Return the ids of applications that run, or whose group still has progress."""
    groups = list_groups(brokers)
    group_ids = {group.group_id for group in groups}
    results = {
        group.group_id.removesuffix(_DRIVERS)
        for group in groups
        if group.protocol_type == PROTOCOL_TYPE and group.group_id.endswith(_DRIVERS)
    }
    # A group without members has no protocol type; all other groups need not be described.
    idle = {group.group_id for group in groups if not group.protocol_type} - results
    applications = {
        name for name in idle if f"{name}{_DRIVERS}" in group_ids or _is_application(brokers, name)
    }
    consumers = [row for row in groups if row.protocol_type == _CONSUMER and row.type != _CONSUMER]
    described = describe_classic_groups(brokers, consumers)
    results |= {group.group_id for group in described if _is_local(brokers, group)}
    return sorted(results | {name for name in applications if not name.endswith(_DRIVERS)})


def _is_application(brokers: Brokers, group_id: str) -> bool:
    committed = committed_offsets(brokers, group_id, require_stable=False)
    return any(
        offset.metadata == PROGRESS or committed_times.decode(offset.metadata)
        for offset in committed.values()
    )


def _is_local(brokers: Brokers, group: Group) -> bool:
    """Return True for the group of a local application.

    A group that is being rebalanced, or has no members, has no assignor: its commits have the form
    of Kafka Streams.
    """
    if group.assignor:
        return group.assignor == ASSIGNOR
    return _is_application(brokers, group.group_id)


def instances_of(brokers: Brokers, application_id: str) -> list[Instance]:
    """Return the instances of an application, the active one first; empty if it does not run."""
    drivers = _group(brokers, group_of(application_id))
    if drivers is not None and drivers.members:
        return _candidates(drivers)
    group = _group(brokers, application_id)
    if group is None or not _is_local(brokers, group):
        return []
    return [
        Instance(row.candidate, row.client_host, True, row.active, row.standby)
        for row in task_instances(group)
    ]


def _group(brokers: Brokers, group_id: str) -> Group | None:
    try:
        return describe_group(brokers, group_id)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None


def _candidates(group: Group) -> list[Instance]:
    results = [
        ElectionResult.decode(member.assignment_bytes)
        for member in group.members
        if member.assignment_bytes
    ]
    # Members without an assignment are in an election.
    active = results[0].active if results else None
    result = [_instance(member, active) for member in group.members]
    return sorted(
        result, key=lambda instance: (not instance.is_active, instance.candidate.since_ms)
    )


def _instance(member: Member, active: str | None) -> Instance:
    fields = json.loads(member.metadata) if member.metadata else {}
    candidate = Candidate.read(fields) if fields else Candidate("", -1)
    return Instance(candidate, member.host, candidate.instance == active)
