"""Follow a topic: new records as they arrive."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ottla.client.admin.offsets import LATEST
from ottla.client.admin.topics import Topic
from ottla.console.model.messages.rows import RowBuilder
from ottla.console.model.messages.scanning import Scan, Span, select_partitions
from ottla.console.model.messages.values import BrowseRequest, Cancelled, MessageRow
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import leaders_of, read_topic
from ottla.operations.survey.offsets import find_offsets
from ottla.operations.survey.records import FetchLimits

_PAUSE_S = 0.2
# Between two looks at the topic: its leaders, and whether it is still the same.
_LOOK_S = 1.0


def tail(
    connection: ClusterConnection, request: BrowseRequest, *, cancelled: Cancelled
) -> Iterator[tuple[MessageRow, ...]]:
    """Yield new records as they arrive, matching the conditions of `request`, until `cancelled`.

    Yields at most `request.limit` records at once, and an empty tuple a few times a second while
    nothing arrives, so that the caller can notice a closed page. Reads from the end at the time of
    the call, or from `request.positions`. A topic that is created again, and new partitions unless
    the request selects some, are read from their beginning. Raises ApiError
    UNKNOWN_TOPIC_OR_PARTITION once the topic does not exist.
    """
    builder = RowBuilder(request, connection.schemas)
    topic = read_topic(connection, request.topic)
    numbers = select_partitions(topic, request.partitions)
    # As for consumers, the end is before open transactions, whose records cannot be read yet.
    ends = _ends(connection, request, topic, numbers)
    positions = dict(ends)
    positions.update((n, offset) for n, offset in request.positions if n in positions)
    return _follow(connection, request, builder, _Followed(topic, positions), cancelled)


@dataclass(slots=True)
class _Followed:
    """A topic with the next offset of each partition."""

    topic: Topic
    positions: dict[int, int]

    def update(self, topic: Topic, selected: Sequence[int]) -> None:
        """Take new metadata: a new topic of this name, or new partitions, begin at 0."""
        if topic.topic_id != self.topic.topic_id:
            self.positions = {}
        known = {row.partition for row in self.topic.partitions} if self.positions else set()
        for row in topic.partitions:
            is_selected = not selected or row.partition in selected
            if row.partition not in known and is_selected:
                self.positions.setdefault(row.partition, 0)
        self.topic = topic


def _ends(
    connection: ClusterConnection, request: BrowseRequest, topic: Topic, numbers: Iterable[int]
) -> dict[int, int]:
    """Return the ends of partitions up to which records can be read."""
    leaders = {key: node for key, node in leaders_of(topic).items() if key[1] in set(numbers)}
    ends = find_offsets(connection, leaders, LATEST, is_committed=request.is_read_committed)
    return {key[1]: row.offset for key, row in ends.items()}


def _follow(
    connection: ClusterConnection,
    request: BrowseRequest,
    builder: RowBuilder,
    followed: _Followed,
    cancelled: Cancelled,
) -> Iterator[tuple[MessageRow, ...]]:
    limits = FetchLimits(is_committed=request.is_read_committed)
    look_at = time.monotonic() + _LOOK_S
    while not cancelled():
        if time.monotonic() >= look_at:
            followed.update(read_topic(connection, request.topic), request.partitions)
            look_at = time.monotonic() + _LOOK_S
        positions = followed.positions
        ends = _ends(connection, request, followed.topic, positions)
        spans = {n: Span(positions[n], end) for n, end in ends.items() if end > positions[n]}
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
