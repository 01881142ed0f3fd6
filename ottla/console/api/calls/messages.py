"""Operations on records: read, search, produce.

Not done: a live tail; poll `search_messages` with `next_positions` instead.
"""

from dataclasses import replace

from ottla.base.errors import ConfigError
from ottla.base.search.conditions import Condition, Field, Operator
from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.model.messages.browsing import (
    BrowseRequest,
    BrowseResult,
    MessageRow,
    Seek,
    browse,
    read_message,
)
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.model.producing import ProduceRequest, ProduceResult, produce
from ottla.operations.survey.connections import ClusterConnection

_TIMEOUT_MAX_S = 60.0


def read_messages(
    connection: ClusterConnection,
    topic: str,
    *,
    seek: Seek = Seek.NEWEST,
    start: int = 0,
    contains: str = "",
    limit: int = 100,
    masking: tuple[MaskingRule, ...] = (),
) -> BrowseResult:
    """Return records of a topic. `start` is the offset, or the time in ms, that `seek` needs;
    `contains` is a text in key, value or a header. Records of open and aborted transactions are
    left out; `search_messages` has more filters, and `is_read_committed`.
    """
    conditions = (Condition(Field.ANY, Operator.CONTAINS, contains),) if contains else ()
    request = BrowseRequest(
        topic,
        seek=seek,
        offset=start,
        timestamp_ms=start,
        limit=limit,
        conditions=conditions,
        masking=masking,
    )
    return browse(connection, request)


def search_messages(
    connection: ClusterConnection,
    topic: str,
    *,
    request: BrowseRequest,
    masking: tuple[MaskingRule, ...] = (),
) -> BrowseResult:
    """Search records by time and by a filter on keys, values and headers: `where` is a text, and
    `conditions` are objects. Continue with `next_positions` as `positions` until they are empty.
    A search ends after a minute at most.
    """
    if request.topic != topic:
        raise ConfigError(f"body.request.topic must be {topic!r}, as in the address")
    timeout_s = min(request.timeout_s, _TIMEOUT_MAX_S)
    return browse(connection, replace(request, masking=masking, timeout_s=timeout_s))


def get_message(
    connection: ClusterConnection,
    topic: str,
    partition: int,
    offset: int,
    *,
    masking: tuple[MaskingRule, ...] = (),
) -> MessageRow:
    """Return one record, with up to a million characters of its value."""
    return read_message(connection, topic, partition, offset, masking=masking)


def produce_messages(
    connection: ClusterConnection, topic: str, *, request: ProduceRequest
) -> ProduceResult:
    """Write records to a topic and wait until all in-sync replicas have acknowledged them."""
    if request.topic != topic:
        raise ConfigError(f"body.request.topic must be {topic!r}, as in the address")
    return produce(connection, request)


_MESSAGES = f"{CLUSTER_PATH}/topics/{{topic}}/messages"

OPERATIONS = (
    Operation("GET", _MESSAGES, Role.VIEWER, read_messages, "messages"),
    Operation("POST", _MESSAGES, Role.EDITOR, produce_messages, "messages"),
    Operation(
        "POST", f"{_MESSAGES}/search", Role.VIEWER, search_messages, "messages", is_dry_run=True
    ),
    Operation("GET", f"{_MESSAGES}/{{partition}}/{{offset}}", Role.VIEWER, get_message, "messages"),
)
