"""Search inside the brokers: the HTTP port of Ottla (`/search`) scans the log, and only matches
travel.

Brokers and console have the same filters; the console compares the matches again, as it does not
trust a port.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.search.conditions import Condition, Field, Operator
from ottla.console.model.messages.scanning import Span
from ottla.console.model.messages.values import BrowseRequest, Seek
from ottla.operations.search.remote import Match, match_of, search_query, search_rows
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.http import HttpError


class Passed(NamedTuple):
    """The broker has searched up to `next_offset` and read so many bytes since it began."""

    next_offset: int
    scanned_bytes: int


@dataclass(frozen=True, slots=True)
class RemoteSearch:
    """A search that the leaders of a topic can run; `urls` are by partition."""

    topic: str
    urls: Mapping[int, str]
    conditions: tuple[Condition, ...]
    is_read_committed: bool
    timeout_s: float

    def run(self, partition: int, span: Span) -> Iterator[Match | Passed]:
        """Yield matches and progress of one partition, at least once a second.

        Raises HttpError if the broker refuses (`search.enable=false`, too many searches) or stops.
        """
        query = search_query(
            (self.topic, partition), span, self.conditions, read_committed=self.is_read_committed
        )
        url = self.urls[partition]
        for row in search_rows(url, query, self.timeout_s):
            match row["type"]:
                case "match":
                    yield match_of(url, row)
                case "progress":
                    yield Passed(int(row["next_offset"]), int(row["bytes"]))
                case "end" if row.get("reason") == "complete":
                    yield Passed(span.end, int(row["bytes"]))
                    return
        raise HttpError(f"{url} ended the search of {self.topic}-{partition} too early")


def remote_search(
    connection: ClusterConnection,
    request: BrowseRequest,
    conditions: Sequence[Condition],
    leaders: Mapping[int, int],
) -> RemoteSearch | None:
    """Return the search if the HTTP ports of all leaders are known and can narrow it down, or None."""
    urls = connection.settings.http_urls
    is_upwards = request.seek is not Seek.NEWEST
    if connection.schemas.has_registry:
        # Brokers do not know the schemas.
        return None
    if not is_upwards or request.masking or not leaders or not any(map(_narrows, conditions)):
        return None
    if not all(node in urls for node in leaders.values()):
        return None
    by_partition = {number: urls[node] for number, node in leaders.items()}
    return RemoteSearch(
        request.topic,
        by_partition,
        tuple(conditions),
        request.is_read_committed,
        connection.timeout_s,
    )


def _narrows(condition: Condition) -> bool:
    """Return False if most records match: then they are fetched faster than found."""
    is_common = condition.operator in (Operator.EXISTS, Operator.IS_NULL)
    return not condition.negated and (not is_common or condition.field is Field.HEADER)
