"""Chooses the starting offsets of a query without progress: the group's committed offsets, else the
sources' reset policy.

This is Kafka's order: committed offsets take precedence over `auto.offset.reset`. Here the
checkpoint holds the progress, and the group only shows it, marked in the commit's metadata
(shadow_group.py). A commit without the mark was therefore made on purpose, by `ottla streams reset`
or Kafka's own tools. The first start of a query stores the offsets in the checkpoint, so that a
repeated first micro-batch begins at the same offsets.
"""

import json
import re

from ottla.client.admin.offsets import (
    EARLIEST,
    LATEST,
    PROGRESS,
    READ_COMMITTED,
    committed_offsets,
    list_offsets,
)
from ottla.client.admin.topics import list_topics
from ottla.client.config.access import ClusterAccess
from ottla.streams.layout.layout import Layout
from ottla.streams.spark.connector.ranges import Offsets
from ottla.streams.topology.topology import Source

_CLIENT_ID = "ottla-streams"


def first_positions(
    layout: Layout, topics: tuple[str, ...], access: ClusterAccess, group_id: str | None
) -> Offsets:
    """Return the starting offsets of the partitions that a query does not read from their
    beginning.
    """
    latest, whole_topics = _latest_topics(layout, topics), global_topics(layout)
    planned = set(topics) - whole_topics
    with access.brokers(client_id=_CLIENT_ID) as brokers:
        counts = {listed.name: len(listed.partitions) for listed in list_topics(brokers)}
        ends = [
            (topic, n) for topic in sorted(latest & planned) for n in range(counts.get(topic, 0))
        ]
        committed = committed_offsets(brokers, group_id) if group_id else {}
        chosen = {
            key: offset.offset
            for key, offset in committed.items()
            if offset.offset >= 0 and offset.metadata != PROGRESS and key[0] in planned
        }
        at_end = dict.fromkeys((key for key in ends if key not in chosen), LATEST)
        result = list_offsets(brokers, at_end, isolation_level=READ_COMMITTED) if at_end else {}
    return chosen | {key: offset.offset for key, offset in result.items()}


def starting_offsets(
    layout: Layout, topics: tuple[str, ...], access: ClusterAccess, positions: Offsets
) -> str:
    """Return the option `startingOffsets`: the positions, within the offsets that exist, else the
    reset policy.

    A partition without a position starts at its beginning, or at its end if its source has
    `offset_reset="latest"`.
    """
    latest = _latest_topics(layout, topics)
    if not positions and not latest:
        return "earliest"
    with access.brokers(client_id=_CLIENT_ID) as brokers:
        counts = {listed.name: len(listed.partitions) for listed in list_topics(brokers)}
        existing = [key for key in positions if key[0] in topics and key[1] < counts.get(key[0], 0)]
        starts = list_offsets(brokers, dict.fromkeys(existing, EARLIEST)) if existing else {}
        ends = list_offsets(brokers, dict.fromkeys(existing, LATEST)) if existing else {}
    within = {
        key: min(max(positions[key], starts[key].offset), ends[key].offset) for key in existing
    }
    starting_offsets = {
        topic: {
            str(n): within.get((topic, n), LATEST if topic in latest else EARLIEST)
            for n in range(counts[topic])
        }
        for topic in topics
    }
    return json.dumps(starting_offsets)


def global_topics(layout: Layout) -> set[str]:
    """Return the topics of global tables and stores, which are always read completely."""
    return {
        topic
        for kind in layout.sub_topologies
        for node in kind.topology.nodes.values()
        if isinstance(node, Source) and node.is_global
        for topic in node.topics
    }


def _latest_topics(layout: Layout, topics: tuple[str, ...]) -> set[str]:
    """Return the topics whose source has `offset_reset="latest"`."""
    results: set[str] = set()
    for kind in layout.sub_topologies:
        for node in kind.topology.nodes.values():
            if isinstance(node, Source) and node.offset_reset == "latest":
                results.update(kind.application.topic_name(topic) for topic in node.topics)
                matches = re.compile(node.pattern or "(?!)").fullmatch
                results.update(topic for topic in topics if matches(topic))
    return results
