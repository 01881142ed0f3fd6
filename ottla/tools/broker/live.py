"""The live line of `ottla up`: the broker's throughput, updated twice a second on a terminal.

It is drawn with a carriage return, which costs the broker 0.1 ms a second and needs no import. Log
lines are printed above it.
"""

import asyncio
from typing import NamedTuple

from ottla.server.node import Node
from ottla.tools.output import StatusLine, size_text
from ottla.wire.messages.list_groups import ListGroupsRequest

SECONDS = 0.5
# Summing over many partitions or groups takes time: with more of them, draw less often.
_PARTITIONS_A_SECOND = 20_000
_GROUPS_A_SECOND = 2_000


class Totals(NamedTuple):
    """Counters since the start (`at` is a time in seconds), and the current number of objects."""

    at: float
    records: int
    bytes_in: int
    bytes_out: int
    partitions: int
    groups: int
    connections: int


class LiveLine:
    """A status line that runs on the broker's loop from `start` to `stop`."""

    def __init__(self, node: Node, line: StatusLine) -> None:
        self._node = node
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
        broker = self._node.broker
        traffic = broker.replicas.traffic()
        return Totals(
            asyncio.get_running_loop().time(),
            traffic.appended_records,
            traffic.appended_bytes,
            traffic.fetched_bytes,
            len(broker.replicas.all_partitions()),
            len(broker.groups.list_groups(ListGroupsRequest()).groups),
            self._node.connections_count,
        )


def text_of(before: Totals, now: Totals) -> str:
    """Return the line for the interval between two totals."""
    seconds = max(now.at - before.at, 0.001)
    words = [
        f"{(now.records - before.records) / seconds:,.0f} messages/s",
        f"in {size_text((now.bytes_in - before.bytes_in) / seconds)}/s",
        f"out {size_text((now.bytes_out - before.bytes_out) / seconds)}/s",
        _count(now.partitions, "partition"),
        _count(now.groups, "group"),
        _count(now.connections, "connection"),
    ]
    return " · ".join(words)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
