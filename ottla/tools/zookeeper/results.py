"""The results of the shell's commands, as the lines of ZooKeeper's own shell and as JSON.

Follows org.apache.zookeeper.cli (3.9).
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.cluster.zk import acls
from ottla.cluster.zk.acls import NodeAcl
from ottla.cluster.zk.live import Details


class WatchedEvent(NamedTuple):
    """The change of a watched node; `kind` is ZooKeeper's word, such as NodeCreated."""

    kind: str
    path: str


class CommandResult(NamedTuple):
    """The parts of a command's result, in the order in which they are shown; most have one part.

    `paths` come from a recursive list. `stats` are the metadata of nodes.
    """

    paths: Sequence[str] = ()
    children: Sequence[str] | None = None
    data: str | None = None
    created: str = ""
    acl: Sequence[NodeAcl] = ()
    stats: Sequence[Details] = ()


def lines_of(result: CommandResult) -> list[str]:
    """Return the lines that ZooKeeper's shell shows; a command that only changes nodes returns no
    line.
    """
    lines = list(result.paths)
    if result.children is not None:
        lines.append(f"[{', '.join(result.children)}]")
    if result.data is not None:
        lines.append(result.data)
    if result.created:
        lines.append(f"Created {result.created}")
    for entry in result.acl:
        lines += [f"'{entry.scheme},'{entry.id}", f": {acls.letters(entry.permissions)}"]
    for stat in result.stats:
        lines += _stat_lines(stat)
    return lines


def facts_of(result: CommandResult) -> dict[str, Any]:
    """Return the parts as JSON values; times are in milliseconds since the Unix epoch."""
    facts: dict[str, Any] = {}
    if result.paths:
        facts["paths"] = list(result.paths)
    if result.children is not None:
        facts["children"] = list(result.children)
    if result.data is not None:
        facts["data"] = result.data
    if result.created:
        facts["created"] = result.created
    if result.acl:
        facts["acl"] = [
            {"scheme": row.scheme, "id": row.id, "permissions": acls.letters(row.permissions)}
            for row in result.acl
        ]
    stats = [stat._asdict() for stat in result.stats]
    if stats:
        facts |= {"stat": stats[0]} if len(stats) == 1 else {"stats": stats}
    return facts


def event_text(event: WatchedEvent) -> str:
    """Return the announcement of a change."""
    return f"\nWATCHER::\n\nWatchedEvent state:SyncConnected type:{event.kind} path:{event.path}"


def _stat_lines(stat: Details) -> list[str]:
    return [
        f"cZxid = {stat.czxid:#x}",
        f"ctime = {_date(stat.ctime_ms)}",
        f"mZxid = {stat.mzxid:#x}",
        f"mtime = {_date(stat.mtime_ms)}",
        f"pZxid = {stat.pzxid:#x}",
        f"cversion = {stat.children_version}",
        f"dataVersion = {stat.version}",
        f"aclVersion = {stat.acl_version}",
        f"ephemeralOwner = {stat.ephemeral_owner & (2**64 - 1):#x}",
        f"dataLength = {stat.data_length}",
        f"numChildren = {stat.children_count}",
    ]


def _date(milliseconds: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(milliseconds / 1000))
