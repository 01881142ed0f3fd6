"""The live line of `ottla up`: throughput and state, updated twice a second on a terminal.

It is drawn with a carriage return, which costs the broker 0.1 ms a second and needs no import. Log
lines are printed above it.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from ottla.cluster.image import NO_CONTROLLER
from ottla.server.node import Node
from ottla.tools.output import StatusLine, size_text
from ottla.wire.messages.list_groups import ListGroupsRequest

SECONDS = 0.5
# Summing over many partitions or groups takes time: with more of them, draw less often.
_PARTITIONS_A_SECOND = 20_000
_GROUPS_A_SECOND = 2_000


class Cluster(NamedTuple):
    """The state of a cluster of several brokers; the controller is -1 while none is elected."""

    live_brokers: int
    brokers: int
    under_replicated: int
    controller: int


class Totals(NamedTuple):
    """Counters since the start (`at` is a time in seconds), and the current number of objects.

    `cluster` is None for a cluster of one broker.
    """

    at: float
    records: int
    bytes_in: int
    bytes_out: int
    partitions: int
    groups: int
    connections: int
    cluster: Cluster | None = None


class LiveLine:
    """A status line that runs on the broker's loop from `start` to `stop`."""

    def __init__(self, nodes: Sequence[Node], line: StatusLine) -> None:
        self._nodes = nodes
        self._line = line
        self._last: Totals
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start drawing; call it on the running loop."""
        self._last = self._read()
        self._schedule()

    def stop(self) -> None:
        """Stop drawing and erase the line."""
        if self._timer is not None:
            self._timer.cancel()
        self._line.clear()

    def _schedule(self) -> None:
        last = self._last
        seconds = last.partitions / _PARTITIONS_A_SECOND + last.groups / _GROUPS_A_SECOND
        self._timer = asyncio.get_running_loop().call_later(max(SECONDS, seconds), self._draw)

    def _draw(self) -> None:
        now = self._read()
        self._line.show(text_of(self._last, now))
        self._last = now
        self._schedule()

    def _read(self) -> Totals:
        brokers = [node.broker for node in self._nodes]
        traffic = [broker.replicas.traffic() for broker in brokers]
        groups = [broker.groups.list_groups(ListGroupsRequest()).groups for broker in brokers]
        return Totals(
            asyncio.get_running_loop().time(),
            sum(item.appended_records for item in traffic),
            sum(item.appended_bytes for item in traffic),
            sum(item.fetched_bytes for item in traffic),
            sum(len(broker.replicas.all_partitions()) for broker in brokers),
            sum(map(len, groups)),
            sum(node.connections_count for node in self._nodes),
            self._read_cluster() if len(self._nodes) > 1 else None,
        )

    def _read_cluster(self) -> Cluster:
        live = [node for node in self._nodes if node.failure is None]
        ids = [node.node_id for node in live if node.broker.controller.is_active]
        under_replicated = sum(
            partition.isr is not None and len(partition.isr.isr) < len(partition.isr.replicas)
            for node in live
            for partition in node.broker.replicas.all_partitions()
        )
        controller = ids[0] if ids else NO_CONTROLLER
        return Cluster(len(live), len(self._nodes), under_replicated, controller)


def text_of(before: Totals, now: Totals) -> str:
    """Return the line for the interval between two totals."""
    seconds = max(now.at - before.at, 0.001)
    phrases = [
        f"{(now.records - before.records) / seconds:,.0f} messages/s",
        f"in {size_text((now.bytes_in - before.bytes_in) / seconds)}/s",
        f"out {size_text((now.bytes_out - before.bytes_out) / seconds)}/s",
        _count(now.partitions, "partition"),
        _count(now.groups, "group"),
        _count(now.connections, "connection"),
    ]
    if now.cluster is not None:
        phrases += cluster_phrases(now.cluster)
    return " · ".join(phrases)


def cluster_phrases(cluster: Cluster) -> list[str]:
    """Return the part of the line that shows the state of a cluster."""
    brokers = _count(cluster.brokers, "broker")
    if cluster.live_brokers < cluster.brokers:
        brokers = f"{cluster.live_brokers} of {brokers}"
    controller = "none" if cluster.controller == NO_CONTROLLER else str(cluster.controller)
    return [
        brokers,
        f"{cluster.under_replicated:,} under-replicated",
        f"controller {controller}",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
