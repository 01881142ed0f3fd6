"""The overview of a cluster: counts, troubled partitions, live rates."""

from collections.abc import Mapping
from typing import Any

from ottla.console.history.points import Kind
from ottla.console.model.brokers import list_brokers
from ottla.console.model.overview import read_overview
from ottla.console.model.partitions import list_troubled
from ottla.console.model.topics import list_topics
from ottla.console.page import Page, Source, View
from ottla.console.pages.brokers import absent_of
from ottla.console.pages.history import history_of
from ottla.operations.survey.metadata import read_metadata

_TOP_TOPICS = 8
_MAX_TROUBLED = 100


def show(view: View) -> Mapping[str, Any]:
    """Return counts, brokers, the largest topics and the troubled partitions."""
    metadata = read_metadata(view.cluster)
    topics = list_topics(view.cluster, include_internal=True, is_patient=not metadata.is_large)
    troubled = list_troubled(view.cluster)
    counts, brokers = read_overview(view.cluster), list_brokers(view.cluster)
    known = {row.node_id for row in brokers}
    return {
        "counts": counts,
        "is_controller_apart": counts.controller_id >= 0 and counts.controller_id not in known,
        "brokers": brokers,
        "absent": absent_of(view, metadata),
        "largest": sorted(topics, key=lambda row: -(row.size_bytes or 0))[:_TOP_TOPICS],
        "troubled": troubled[:_MAX_TROUBLED],
        "troubled_count": len(troubled),
        **history_of(view, Kind.CLUSTER),
    }


def read_rates(view: View) -> Mapping[str, Any]:
    """Return the number of records ever written to all topics, from which the chart has its rate."""
    topics = list_topics(view.cluster)
    total = sum(row.records or 0 for row in topics)
    name = view.say("records") + "/s"
    return {"at_ms": view.cluster.now_ms(), "values": {name: total}}


PAGES = (Page("/overview", "overview.html", show, "overview", refresh_s=5),)
SOURCES = (Source("/overview.json", read_rates),)
