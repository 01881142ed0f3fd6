"""Members of share groups and streams groups: single heartbeats, which kio encodes.

A member stays in its group for the session timeout (45 seconds) after a heartbeat.
"""

import io
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from kio.schema.share_group_heartbeat.v1 import request as share
from kio.schema.share_group_heartbeat.v1 import response as share_response
from kio.schema.streams_group_heartbeat.v0 import request as streams
from kio.schema.streams_group_heartbeat.v0 import response as streams_response
from kio.serial import entity_reader, entity_writer

from ottla.base.errors import ErrorCode

LEAVING = -1
"""The epoch with which a member leaves its group."""
_PATIENCE_S = 30.0
_PAUSE = threading.Event()
_CLIENT = b"client"


class HeartbeatError(AssertionError):
    """A response with an error; `code` is its error code."""

    def __init__(self, response: Any) -> None:
        super().__init__(response)
        self.code = int(response.error_code)


def share_heartbeat(
    bootstrap: str,
    group: str,
    epoch: int,
    *,
    topics: Sequence[str] = ("t",),
    member: str = "member",
) -> Any:
    """Send a heartbeat of a member of a share group; return the response."""
    request = share.ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id="r1",
        subscribed_topic_names=None if epoch == LEAVING else tuple(topics),
    )
    return _exchange(bootstrap, request, share_response.ShareGroupHeartbeatResponse)


def subtopology(
    source: str, *, repartition: str = "", changelog: str = "", name: str = "0"
) -> streams.Subtopology:
    """Return a part of a topology that reads a topic and, optionally, two internal topics."""
    return streams.Subtopology(
        subtopology_id=name,
        source_topics=(source,) if source else (),
        source_topic_regex=(),
        state_changelog_topics=_internal_topics(changelog, 0),
        repartition_sink_topics=(),
        repartition_source_topics=_internal_topics(repartition, 2),
        copartition_groups=(),
    )


def _internal_topics(name: str, partitions: int) -> tuple[streams.TopicInfo, ...]:
    if not name:
        return ()
    return (
        streams.TopicInfo(name=name, partitions=partitions, replication_factor=1, topic_configs=()),
    )


def streams_heartbeat(
    bootstrap: str,
    group: str,
    epoch: int,
    *,
    parts: Sequence[streams.Subtopology] = (),
    member: str = "member",
    active: Sequence[Any] = (),
) -> Any:
    """Send a heartbeat of a member of a streams group; return the response.

    `active` are the tasks that the member has started; by default a topology reads topic `t`.
    """
    is_leaving = epoch == LEAVING
    tasks = tuple(
        streams.TaskIds(subtopology_id=task.subtopology_id, partitions=task.partitions)
        for task in active
    )
    topology = streams.Topology(epoch=3, subtopologies=tuple(parts) or (subtopology("t"),))
    request = streams.StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        endpoint_information_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout=timedelta(milliseconds=-1 if is_leaving else 60_000),
        topology=None if epoch else topology,
        active_tasks=None if is_leaving else tasks,
        standby_tasks=None if is_leaving else (),
        warmup_tasks=None if is_leaving else (),
        process_id=None if is_leaving else f"process-{member}",
        user_endpoint=None if is_leaving else streams.Endpoint(host="h", port=80),
        client_tags=None if is_leaving else (streams.KeyValue(key="zone", value="a"),),
        task_offsets=None,
        task_end_offsets=None,
        shutdown_application=False,
    )
    return _exchange(bootstrap, request, streams_response.StreamsGroupHeartbeatResponse)


def join(heartbeat: Callable[[int], Any]) -> Any:
    """Send heartbeats as a new member until the group has assigned something to it.

    A coordinator of Apache Kafka 4.3.0 that does not know a new topic yet fails with
    UNKNOWN_SERVER_ERROR: the member joins again.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            response = heartbeat(0)
            break
        except HeartbeatError as error:
            if error.code != ErrorCode.UNKNOWN_SERVER_ERROR or time.monotonic() > deadline:
                raise
            _PAUSE.wait(0.05)
    while not _is_assigned(response):
        assert time.monotonic() < deadline, response
        response = heartbeat(int(response.member_epoch))
    return response


def _is_assigned(response: Any) -> bool:
    if isinstance(response, share_response.ShareGroupHeartbeatResponse):
        return response.assignment is not None and bool(response.assignment.topic_partitions)
    return bool(response.active_tasks)


def _exchange(bootstrap: str, request: Any, response_type: type[Any]) -> Any:
    body = io.BytesIO()
    entity_writer(type(request))(body, request)
    head = struct.pack(
        ">hhih6sb", request.__api_key__, request.__version__, 7, len(_CLIENT), _CLIENT, 0
    )
    frame = head + body.getvalue()
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), _PATIENCE_S) as line:
        line.sendall(struct.pack(">i", len(frame)) + frame)
        with line.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            data = stream.read(size)
    # The header is a correlation id and no tagged fields.
    response, _ = entity_reader(response_type)(data, 5)
    if int(response.error_code):
        raise HeartbeatError(response)
    return response
