"""A search in the brokers: one after the other, each in the partitions that it leads."""

import time
from collections.abc import Callable, Mapping

from ottla.client.brokers import Brokers
from ottla.client.raw.consumer import ConsumedRecord
from ottla.operations.search.remote import Row, match_of, search_query, search_rows
from ottla.operations.search.request import OnMatch, Result, Search
from ottla.operations.stop import Stop

Address = tuple[str, int]
_TIMEOUT_S = 30.0
# A partition may move to another broker while it is searched.
_ROUNDS = 5
_PAUSE_S = 0.2
_MOVED = ("NOT_LEADER_OR_FOLLOWER",)


class RemoteSearch:
    """One search; `run` calls back with each match."""

    def __init__(self, brokers: Brokers, known: Mapping[int, Address], search: Search) -> None:
        self._brokers = brokers
        self._known = known
        self._search = search
        # The next offset of each partition that is not finished.
        self._left = {
            number: start for number, (start, end) in search.ranges.items() if start < end
        }
        self._matches = self._records = 0
        self._problems: list[str] = []

    def run(self, on_match: OnMatch, advance: Callable[[int], None], stop: Stop) -> Result:
        """Search until the end, the limit, or until stopped; `advance` counts offsets."""
        started = time.monotonic()
        for attempt in range(_ROUNDS):
            if attempt:
                time.sleep(_PAUSE_S * attempt)
            for number, leader in self._leaders().items():
                if self._is_over(stop) or number not in self._left:
                    break
                if leader in self._known:
                    self._search_partition(number, self._known[leader], on_match, advance, stop)
            if not self._left or self._is_over(stop):
                break
        else:
            self._problems += [
                f"{self._search.topic}-{number} was not searched from offset {at} on: its leader moved, "
                "or does not serve /search"
                for number, at in self._left.items()
            ]
        seconds = time.monotonic() - started
        return Result(self._matches, self._records, seconds, self._problems)

    def _is_over(self, stop: Stop) -> bool:
        return stop.requested or 0 < self._search.limit <= self._matches

    def _leaders(self) -> dict[int, int]:
        rows = self._brokers.topic(self._search.topic).partitions
        known = {row.partition_index: row.leader_id for row in rows}
        return {number: known.get(number, -1) for number in sorted(self._left)}

    def _search_partition(
        self,
        number: int,
        address: Address,
        on_match: OnMatch,
        advance: Callable[[int], None],
        stop: Stop,
    ) -> None:
        records, end = 0, self._search.ranges[number][1]
        for row in search_rows(_url(address), self._query(number), _TIMEOUT_S):
            if stop.requested:
                # Leaving the loop closes the connection, which cancels the search.
                return
            match row["type"]:
                case "match":
                    self._matches += 1
                    on_match(_record(address, row))
                case "progress":
                    self._advance(number, row["next_offset"], advance)
                    records = row["records"]
                case "problem" if row["error"] in _MOVED:
                    return
                case "problem":
                    self._problems.append(
                        f"{self._search.topic}-{number}, offset {row['offset']}: {row['message']}"
                    )
                case "end":
                    records = row["records"]
                    for item in row["partitions"]:
                        self._advance(number, item["next_offset"], advance)
                    is_complete = row["reason"] == "complete" and row["partitions"]
                    if is_complete or self._left[number] >= end:
                        self._advance(number, end, advance)
                        del self._left[number]
        self._records += records

    def _advance(self, number: int, offset: int, advance: Callable[[int], None]) -> None:
        advance(max(offset - self._left[number], 0))
        self._left[number] = max(offset, self._left[number])

    def _query(self, number: int) -> list[tuple[str, object]]:
        search, position = self._search, self._left[number]
        # A broker looks at the time of each record, up to the end of its log.
        is_timed = search.until_ms is not None
        # The broker's time index finds the start, and skips older batches by their headers.
        is_new = position == search.ranges[number][0]
        return search_query(
            (search.topic, number),
            (
                f"@{search.from_ms}" if search.from_ms >= 0 and is_new else position,
                f"@{search.until_ms}" if is_timed else search.ranges[number][1],
            ),
            search.conditions,
            limit=search.limit - self._matches if search.limit else 0,
            read_committed=search.read_committed,
        )


def _url(address: Address) -> str:
    host, port = address
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _record(address: Address, row: Row) -> ConsumedRecord:
    record = match_of(_url(address), row).record
    return ConsumedRecord(
        row["topic"],
        row["partition"],
        record.offset,
        record.timestamp,
        row["tstype"],
        record.key,
        record.value,
        list(record.headers),
    )
