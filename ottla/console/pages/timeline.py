"""Leaders, ISR, controllers and brokers over time, drawn and as a table."""

from collections.abc import Mapping
from typing import Any

from ottla.console.model.topics import list_topics
from ottla.console.page import Page, View
from ottla.console.timeline.drawing import Scale, draw_nodes, draw_partitions
from ottla.console.timeline.spans import PartitionSpan

# Minutes by their text in the choice.
PERIODS = {15: "15 min", 60: "1 h", 360: "6 h", 1440: "24 h", 10_080: "7 d"}
_DEFAULT_MINUTES = 60
_CHANGES_MAX = 200
_LANES_MAX = 64
_PARTITION_SPANS_MAX = 5_000
_MINUTE_MS = 60_000


def show(view: View) -> Mapping[str, Any]:
    """Return the timeline of the brokers, and of a topic's partitions if the query names one."""
    minutes = view.query.integer("minutes", _DEFAULT_MINUTES, least=1)
    minutes = min(minutes, max(PERIODS))
    topic = view.query.text("topic")
    first = view.query.integer("first", 0, least=0)
    store, cluster, now_ms = view.console.timeline, view.cluster.name, view.console.clock.time_ms()
    periods = store.periods(cluster, since_ms=now_ms - minutes * _MINUTE_MS)
    # A young console has nothing to show of the rest of the period.
    first_ms = min(periods[0].start_ms, now_ms - _MINUTE_MS) if periods else 0
    scale = Scale(max(now_ms - minutes * _MINUTE_MS, first_ms), now_ms)
    controllers = store.controllers(cluster, since_ms=scale.start_ms)
    brokers = store.brokers(cluster, since_ms=scale.start_ms)
    spans: list[PartitionSpan] = []
    if topic:
        spans = store.partitions(
            cluster, topic=topic, since_ms=scale.start_ms, limit=_PARTITION_SPANS_MAX
        )
    lanes = [row for row in spans if first <= row.partition < first + _LANES_MAX]
    changes = (
        lanes[::-1]
        if topic
        else store.changes(cluster, since_ms=scale.start_ms, limit=_CHANGES_MAX)
    )
    return {
        "minutes": minutes,
        "choices": PERIODS.items(),
        "topic": topic,
        "topics": [row.name for row in list_topics(view.cluster, include_internal=True)],
        "first": first,
        "lanes_max": _LANES_MAX,
        "partitions": 1 + max((row.partition for row in spans), default=-1),
        "nodes": draw_nodes(controllers, brokers, periods, scale, view.say("controller")),
        "drawing": draw_partitions(lanes, periods, scale) if topic else None,
        "controllers": controllers[::-1],
        "broker_ids": {row.node_id for row in brokers},
        "changes": changes[:_CHANGES_MAX],
        "changes_max": _CHANGES_MAX,
        "observed_ms": periods[-1].end_ms if periods else None,
    }


PAGES = (Page("/timeline", "timeline.html", show, "brokers", refresh_s=5),)
