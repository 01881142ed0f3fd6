"""Stream applications, of `ottla.streams` and of Kafka Streams, with lag and instances.

An application of `ottla.streams` commits its progress in the group of its name, and its instances
are the members of the group `NAME-drivers`, whose metadata has the description of the topology.
The workers of a local application are the members of the group of its name. Kafka Streams uses a
classic group with an assignor of its own, or a group of type `streams` (KIP-1071); its topology is
known if a user has uploaded it.

Not done: StreamsGroupDescribe (KIP-1071), so that the members of such a group are unknown. Local
applications that are stopped or being rebalanced: their groups then have no assignor. The
metrics of instances (size of the state, dropped records), because a console that connects to
addresses from the metadata of a group could be led anywhere.
"""

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ottla.base.errors import ApiError, ConfigError, ErrorCode, ProtocolError
from ottla.client.admin import groups as admin
from ottla.console.model.groups import (
    GroupDetail,
    GroupPartition,
    GroupRow,
    describe_group,
    list_groups,
)
from ottla.console.model.topics import list_topics
from ottla.console.streams.describe_text import TEXT_MAX, Topology, parse_topology
from ottla.console.streams.uploads import TopologyUploads
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterConnection
from ottla.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
)

_DRIVERS = "-drivers"
_DRIVERS_PROTOCOL = "ottla-streams"
_STREAMS_ASSIGNOR = "stream"
_LOCAL_ASSIGNOR = "ottla-streams"
_STREAMS_TYPE = "streams"
_OWN_TOPICS = ("-changelog", "-repartition")


@dataclass(frozen=True, slots=True)
class Application:
    """An application; `kind` is "ottla" (on Spark), "local" or "kafka", and `instances` the number
    of its members.
    """

    name: str
    kind: str
    state: str
    instances: int
    topics: tuple[str, ...]
    lag: int | None


@dataclass(frozen=True, slots=True)
class ApplicationInstance:
    """An instance. `role` is "active", "standby" or "" if it is unknown, as for Kafka Streams.

    `since_ms` is the time of its start on its own clock. `server` and `metrics` are addresses that
    it has published; the console does not connect to them. `tasks` and `standbys` are of a worker
    of a local application.
    """

    instance: str
    role: str
    client_id: str
    host: str
    since_ms: int | None
    server: str
    metrics: str
    tasks: tuple[str, ...] = ()
    standbys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApplicationDetail:
    """An application with its instances, partitions and topology.

    `own_topics` are its changelogs and repartition topics. `topology_source` is "published" (by a
    running instance), "uploaded" (by a user of the console) or "" if there is no `topology_text`.
    """

    name: str
    state: str
    instances: tuple[ApplicationInstance, ...]
    partitions: tuple[GroupPartition, ...]
    lag: int | None
    lag_s: float | None
    own_topics: tuple[str, ...]
    topology_text: str
    topology_source: str

    @property
    def topology(self) -> Topology | None:
        """The topology; None if it is unknown or cannot be read."""
        try:
            return parse_topology(self.topology_text) if self.topology_text else None
        except ConfigError:
            return None


def select_applications(groups: Sequence[GroupRow]) -> list[Application]:
    """Return the applications among the groups of a cluster, by name. Pure."""
    by_id = {row.group_id: row for row in groups}
    applications = {}
    for row in groups:
        if row.protocol_type == _DRIVERS_PROTOCOL or row.group_id.endswith(_DRIVERS):
            name = row.group_id.removesuffix(_DRIVERS)
            progress = by_id.get(name)
            members = row.members or 0
            state = "Running" if members else "Stopped"
            topics = progress.topics if progress else ()
            lag = progress.lag if progress else None
            applications[name] = Application(name, "ottla", state, members, topics, lag)
    for row in groups:
        is_local = row.assignor == _LOCAL_ASSIGNOR
        is_streams = row.type == _STREAMS_TYPE or row.assignor == _STREAMS_ASSIGNOR
        if (is_local or is_streams) and row.group_id not in applications:
            kind, state = ("local", "Running") if is_local else ("kafka", row.state)
            applications[row.group_id] = Application(
                row.group_id, kind, state, row.members or 0, row.topics, row.lag
            )
    return [applications[name] for name in sorted(applications)]


def list_applications(
    connection: ClusterConnection, topologies: TopologyUploads
) -> list[Application]:
    """Return the stream applications of a cluster: those that run, have run, or whose topology was
    uploaded.
    """
    groups = list_groups(connection, with_lag=True)
    applications = {row.name: row for row in select_applications(groups)}
    by_id = {row.group_id: row for row in groups}
    for name in topologies.applications(connection.name):
        row = by_id.get(name)
        if name not in applications and row is not None:
            applications[name] = Application(
                name, "kafka", row.state, row.members or 0, row.topics, row.lag
            )
        elif name not in applications:
            applications[name] = Application(name, "kafka", "Stopped", 0, (), None)
    return [applications[name] for name in sorted(applications)]


def describe_application(
    connection: ClusterConnection, topologies: TopologyUploads, application: str
) -> ApplicationDetail:
    """Return an application with its instances, lag and topology; ApiError GROUP_ID_NOT_FOUND if it
    does not exist.
    """
    progress = _group(connection, application)
    drivers = _admin_group(connection, application + _DRIVERS)
    upload = topologies.find(connection.name, application)
    if progress is None and drivers is None and upload is None:
        raise ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"There is no stream application {application!r}."
        )
    is_local = drivers is None and progress is not None and progress.assignor == _LOCAL_ASSIGNOR
    workers = _admin_group(connection, application) if is_local else None
    published = [
        *(_published(read_metadata_of(row.metadata)) for row in _members(drivers)),
        *(_published(_worker_fields(row)) for row in _members(workers)),
    ]
    text = next((item for item in published if item), "")
    source = "published" if text else "uploaded" if upload else ""
    if not text and upload is not None:
        text = upload.text
    if drivers is not None:
        instances, state = _driver_instances(drivers), "Running" if drivers.members else "Stopped"
    elif workers is not None:
        instances, state = _worker_instances(workers), "Running"
    else:
        instances = () if progress is None else _group_instances(progress)
        state = "Stopped" if progress is None else progress.state
    return ApplicationDetail(
        name=application,
        state=state,
        instances=instances,
        partitions=() if progress is None else progress.partitions,
        lag=None if progress is None else progress.lag,
        lag_s=None if progress is None else progress.lag_s,
        own_topics=_own_topics(connection, application),
        topology_text=text,
        topology_source=source,
    )


def upload_topology(
    connection: ClusterConnection, topologies: TopologyUploads, application: str, *, text: str
) -> Change:
    """Store the output of Topology#describe for an application; one that is published by a running
    instance has precedence.
    """
    topologies.save(connection.name, application, text)
    nodes = {"nodes": str(len(parse_topology(text).nodes))}
    return Change(connection.name, "topology.upload", application, after=nodes)


def delete_topology(
    connection: ClusterConnection, topologies: TopologyUploads, application: str
) -> Change:
    """Delete the uploaded topology of an application."""
    topologies.delete(connection.name, application)
    return Change(connection.name, "topology.delete", application)


def read_metadata_of(metadata: bytes) -> Mapping[str, Any]:
    """Return the fields that an instance of `ottla.streams` publishes, possibly none. Pure."""
    try:
        fields = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _worker_fields(member: admin.Member) -> Mapping[str, Any]:
    """Return the fields that a worker of a local application publishes about its instance. Pure."""
    fields = read_metadata_of(_user_data(member.metadata, decode_subscription)).get("instance")
    return fields if isinstance(fields, dict) else {}


def _user_data(
    data: bytes,
    decode: Callable[[bytes], ConsumerProtocolSubscription | ConsumerProtocolAssignment],
) -> bytes:
    try:
        return bytes(decode(data).user_data or b"")
    except ProtocolError:
        return b""


def _published(fields: Mapping[str, Any]) -> str:
    """Return the description of the topology that a member publishes, or an empty text."""
    encoded = fields.get("topology")
    if not isinstance(encoded, str) or not encoded:
        return ""
    try:
        # The text of a hostile member must not fill the memory.
        reader = zlib.decompressobj()
        text = reader.decompress(base64.b64decode(encoded, validate=True), TEXT_MAX).decode()
    except (ValueError, zlib.error):
        return ""
    return "" if reader.unconsumed_tail else text


def _driver_instances(drivers: admin.Group) -> tuple[ApplicationInstance, ...]:
    active = {
        read_metadata_of(member.assignment_bytes).get("active") for member in drivers.members
    } - {None}
    rows = []
    for member in drivers.members:
        fields = read_metadata_of(member.metadata)
        name = str(fields.get("instance", ""))
        role = ("active" if name in active else "standby") if active else ""
        rows.append(_instance(member, fields, role))
    return tuple(sorted(rows, key=lambda row: (row.role != "active", row.instance)))


def _worker_instances(group: admin.Group) -> tuple[ApplicationInstance, ...]:
    """Return the workers of a local application with their tasks."""
    rows = []
    for member in group.members:
        placed = read_metadata_of(_user_data(member.assignment_bytes, decode_assignment))
        replicas = _names(placed, "standby") + _names(placed, "warmup")
        row = _instance(member, _worker_fields(member), "active")
        rows.append(replace(row, tasks=_names(placed, "active"), standbys=replicas))
    return tuple(sorted(rows, key=lambda row: row.instance))


def _names(fields: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    names = fields.get(kind)
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _instance(member: admin.Member, fields: Mapping[str, Any], role: str) -> ApplicationInstance:
    since = fields.get("since_ms")
    return ApplicationInstance(
        instance=str(fields.get("instance", "")) or member.member_id,
        role=role,
        client_id=member.client_id,
        host=member.host,
        since_ms=since if isinstance(since, int) and since >= 0 else None,
        server=str(fields.get("host", "")),
        metrics=str(fields.get("metrics", "")),
    )


def _members(group: admin.Group | None) -> Sequence[admin.Member]:
    return () if group is None else group.members


def _group_instances(group: GroupDetail) -> tuple[ApplicationInstance, ...]:
    return tuple(
        ApplicationInstance(row.member_id, "", row.client_id, row.host, None, "", "")
        for row in group.members
    )


def _own_topics(connection: ClusterConnection, application: str) -> tuple[str, ...]:
    names = (row.name for row in list_topics(connection, include_internal=True))
    prefix = f"{application}-"
    return tuple(name for name in names if name.startswith(prefix) and name.endswith(_OWN_TOPICS))


def _group(connection: ClusterConnection, group_id: str) -> GroupDetail | None:
    try:
        return describe_group(connection, group_id)
    except ApiError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


def _admin_group(connection: ClusterConnection, group_id: str) -> admin.Group | None:
    try:
        with connection.brokers() as brokers:
            return admin.describe_group(brokers, group_id)
    except ApiError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise
