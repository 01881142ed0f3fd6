"""A search by reading the topic, for brokers that do not serve /search, as Apache Kafka's."""

import time
from collections.abc import Callable

from ottla.base.search.matching import Matcher
from ottla.client.brokers import Brokers
from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.client.raw.goal import Goal
from ottla.operations.search.request import OnMatch, Result, Search
from ottla.operations.stop import Stop

_BATCH = 1000
_POLL_S = 0.1


class LocalSearch:
    """One search; `run` calls back with each match."""

    def __init__(self, brokers: Brokers, search: Search) -> None:
        self._brokers = brokers
        self._search = search
        self._matcher = Matcher(search.conditions)

    def run(self, on_match: OnMatch, advance: Callable[[int], None], stop: Stop) -> Result:
        """Search until the end, the limit, or until stopped; `advance` counts records."""
        search, started = self._search, time.monotonic()
        keys = {
            (search.topic, number): span
            for number, span in search.ranges.items()
            if span[0] < span[1]
        }
        starts = {key: start for key, (start, _) in keys.items()}
        goal = Goal(at_end=True, stops={key: end for key, (_, end) in keys.items()})
        goal.assign(starts)
        result = Result(0, 0, 0.0, [])
        isolation = "read_committed" if search.read_committed else "read_uncommitted"
        settings = {
            **self._brokers.settings,
            "isolation.level": isolation,
            "fetch.wait.max.ms": "10",
        }
        with RecordConsumer(self._brokers.bootstrap, settings=settings) as consumer:
            consumer.assign(starts)
            has_enough = not keys
            while not (has_enough or goal.is_reached or stop.requested):
                events = consumer.poll(_POLL_S, limit=_BATCH)
                has_enough = self._look_through(events, goal, result, on_match, advance)
        result.seconds = time.monotonic() - started
        return result

    def _look_through(
        self,
        events: list[ConsumedRecord | EndOfPartition],
        goal: Goal,
        result: Result,
        on_match: OnMatch,
        advance: Callable[[int], None],
    ) -> bool:
        """Report the matches among the events; return True if there are enough."""
        for event in events:
            if isinstance(event, EndOfPartition):
                goal.reach(event)
                continue
            if not goal.wants(event):
                continue
            result.records += 1
            advance(1)
            if self._matches(event):
                result.matches += 1
                on_match(event)
                if 0 < self._search.limit <= result.matches:
                    return True
        return False

    def _matches(self, event: ConsumedRecord) -> bool:
        if 0 <= event.timestamp < self._search.from_ms:
            return False
        until_ms = self._search.until_ms
        if until_ms is not None and event.timestamp >= until_ms:
            return False
        return self._matcher.matches(event.key, event.value, event.headers)
