"""Follow a topic: new records as they arrive."""

from collections.abc import Iterator

from ottla.client.admin.offsets import LATEST
from ottla.console.model.messages.rows import RowBuilder
from ottla.console.model.messages.scanning import Scan, Span, select_partitions
from ottla.console.model.messages.values import BrowseRequest, Cancelled, MessageRow
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import leaders_of, read_topic
from ottla.operations.survey.offsets import find_offsets
from ottla.operations.survey.records import FetchLimits

_PAUSE_S = 0.2


def tail(
    connection: ClusterConnection, request: BrowseRequest, *, cancelled: Cancelled
) -> Iterator[tuple[MessageRow, ...]]:
    """Yield new records as they arrive, matching the conditions of `request`, until `cancelled`.

    Yields at most `request.limit` records at once, and an empty tuple a few times a second while
    nothing arrives, so that the caller can notice a closed page. Reads from the end at the time of
    the call, or from `request.positions`. New partitions are not followed.
    """
    builder = RowBuilder(request, connection.schemas)
    topic = read_topic(connection, request.topic)
    numbers = select_partitions(topic, request.partitions)
    leaders = {key: node for key, node in leaders_of(topic).items() if key[1] in numbers}
    positions = {
        key[1]: row.offset for key, row in find_offsets(connection, leaders, LATEST).items()
    }
    positions.update((n, offset) for n, offset in request.positions if n in positions)
    return _follow(connection, request, builder, positions, cancelled)


def _follow(
    connection: ClusterConnection,
    request: BrowseRequest,
    builder: RowBuilder,
    positions: dict[int, int],
    cancelled: Cancelled,
) -> Iterator[tuple[MessageRow, ...]]:
    leaders = leaders_of(read_topic(connection, request.topic))
    limits = FetchLimits(is_committed=request.is_read_committed)
    while not cancelled():
        followed = {key: node for key, node in leaders.items() if key[1] in positions}
        ends = find_offsets(connection, followed, LATEST, is_committed=request.is_read_committed)
        spans = {
            key[1]: Span(positions[key[1]], row.offset)
            for key, row in ends.items()
            if row.offset > positions[key[1]]
        }
        if len(ends) < len(followed):
            leaders = leaders_of(read_topic(connection, request.topic))
        if not spans:
            yield ()
            connection.pause(_PAUSE_S)
            continue
        yield from _new_rows(
            Scan(connection, request.topic, spans, limits), request, builder, cancelled
        )
        positions.update((number, span.end) for number, span in spans.items())


def _new_rows(
    scan: Scan, request: BrowseRequest, builder: RowBuilder, cancelled: Cancelled
) -> Iterator[tuple[MessageRow, ...]]:
    while not scan.is_done and not cancelled():
        rows: list[MessageRow] = []
        for part in scan.step():
            for record in part.records:
                row = builder.build(
                    part.partition, record, is_log_append_time=part.header.has_log_append_time
                )
                if row is not None:
                    rows.append(row)
            if len(rows) >= request.limit:
                yield tuple(sorted(rows, key=lambda row: row.timestamp_ms))
                rows = []
        yield tuple(sorted(rows, key=lambda row: row.timestamp_ms))
