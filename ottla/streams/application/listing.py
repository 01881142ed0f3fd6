"""Lists the applications of a cluster, their state and instances (kafka-streams-groups).

An application commits its progress in the group of its name, with a mark in the metadata. Its
instances are the members of the group `<application id>-drivers`; their assignment is the result of
the election.
"""

import json
from dataclasses import dataclass

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.groups import Member, describe_group, list_groups
from ottla.client.admin.offsets import PROGRESS, committed_offsets
from ottla.client.brokers import Brokers
from ottla.streams.application.election import PROTOCOL_TYPE, Candidate, ElectionResult, group_of

_DRIVERS = group_of("")
RUNNING, NOT_RUNNING = "RUNNING", "NOT_RUNNING"


@dataclass(frozen=True)
class Instance:
    """A member of the election: its candidacy, its host, and whether it is active."""

    candidate: Candidate
    client_host: str
    is_active: bool


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
    return sorted(results | {name for name in applications if not name.endswith(_DRIVERS)})


def _is_application(brokers: Brokers, group_id: str) -> bool:
    committed = committed_offsets(brokers, group_id, require_stable=False)
    return any(offset.metadata == PROGRESS for offset in committed.values())


def instances_of(brokers: Brokers, application_id: str) -> list[Instance]:
    """Return the instances of an application, the active one first; empty if it does not run."""
    try:
        group = describe_group(brokers, group_of(application_id))
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return []
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
