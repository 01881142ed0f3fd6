"""The members of a local application's group, as they and the group's leader describe them.

A member's subscription has a description of its instance, and its assignment the names of its
tasks: each worker of an instance is a member. All tools that may describe the group can read them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.admin.groups import Group, Member
from ottla.streams.application.election import Candidate
from ottla.wire import consumer_protocol

ASSIGNOR = "ottla-streams"


@dataclass(frozen=True)
class TaskInstance:
    """An instance with the names of its tasks; `standby` has warm-up replicas, too."""

    candidate: Candidate
    client_host: str
    active: tuple[str, ...]
    standby: tuple[str, ...]


def task_instances(group: Group) -> list[TaskInstance]:
    """Return the instances of a local application, in the order of their starts.

    While the group is being rebalanced, its description has no tasks.
    """
    rows: dict[str, list[Member]] = {}
    candidates: dict[str, Candidate] = {}
    for member in group.members:
        candidate = Candidate.read(_instance_fields(member))
        name = candidate.instance or member.member_id
        candidates.setdefault(name, candidate)
        rows.setdefault(name, []).append(member)
    instances = [_instance(candidates[name], members) for name, members in rows.items()]
    return sorted(instances, key=lambda row: (row.candidate.since_ms, row.candidate.instance))


def _instance(candidate: Candidate, members: list[Member]) -> TaskInstance:
    documents = [_assignment(member) for member in members]
    active = {name for document in documents for name in document.get("active", ())}
    standby = {
        name
        for document in documents
        for kind in ("standby", "warmup")
        for name in document.get(kind, ())
    }
    return TaskInstance(
        candidate, members[0].host, tuple(sorted(active)), tuple(sorted(standby - active))
    )


def _instance_fields(member: Member) -> Mapping[str, Any]:
    unknown = {"instance": "", "since_ms": -1}
    if not member.metadata:
        return unknown
    data = consumer_protocol.decode_subscription(member.metadata).user_data
    fields: Mapping[str, Any] = json.loads(bytes(data or b"{}")).get("instance", unknown)
    return fields


def _assignment(member: Member) -> Mapping[str, Any]:
    if not member.assignment_bytes:
        return {}
    data = consumer_protocol.decode_assignment(member.assignment_bytes).user_data
    document: Mapping[str, Any] = json.loads(bytes(data or b"{}"))
    return document
