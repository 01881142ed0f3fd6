"""Stream applications: those of `ottla.streams` and of Kafka Streams, with lag and instances.

An application of `ottla.streams` commits its progress in the group of its name, and its instances
are the members of the group `NAME-drivers`. Kafka Streams uses a group of type `streams`
(KIP-1071), or a classic one whose members are assigned by its own assignor.

Not done: the topology itself, which applications do not publish. The drawing shows the topics that
an application reads, and its own by their names.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.console.model.groups import GroupDetail, GroupRow, describe_group, list_groups
from ottla.console.model.topics import list_topics
from ottla.console.page import Page, View

_DRIVERS = "-drivers"
_DRIVERS_PROTOCOL = "ottla-streams"
_OWN_TOPICS = ("-changelog", "-repartition")
# The drawing, in pixels.
_ROW, _WIDTH, _GAP, _BOX = 40, 260, 70, 28


class Application(NamedTuple):
    """An application; `kind` is "ottla" or "kafka", and `instances` the number of its processes."""

    name: str
    kind: str
    state: str
    instances: int
    topics: tuple[str, ...]
    lag: int | None


def list_applications(groups: Sequence[GroupRow]) -> list[Application]:
    """Return the applications among the groups of a cluster."""
    by_id = {row.group_id: row for row in groups}
    applications = []
    for row in groups:
        if row.protocol_type == _DRIVERS_PROTOCOL or row.group_id.endswith(_DRIVERS):
            name = row.group_id.removesuffix(_DRIVERS)
            progress = by_id.get(name)
            members = row.members or 0
            state = "Running" if members else "Stopped"
            topics = progress.topics if progress else ()
            lag = progress.lag if progress else None
            applications.append(Application(name, "ottla", state, members, topics, lag))
        elif row.type == "streams":
            applications.append(
                Application(row.group_id, "kafka", row.state, row.members or 0, row.topics, row.lag)
            )
    return sorted(applications)


def show_applications(view: View) -> Mapping[str, Any]:
    """Return the applications of the cluster."""
    return {"applications": list_applications(list_groups(view.cluster, with_lag=True))}


def show_application(view: View) -> Mapping[str, Any]:
    """Return an application with its instances, partitions and topics."""
    name = view.query.get("id", "")
    progress, drivers = _group(view, name), _group(view, name + _DRIVERS)
    if progress is None and drivers is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no application {name!r}.")
    members = drivers.members if drivers else progress.members if progress else ()
    partitions = progress.partitions if progress else ()
    read = sorted({row.topic for row in partitions})
    own = [
        row.name
        for row in list_topics(view.cluster, include_internal=True)
        if row.name.startswith(name + "-") and row.name.endswith(_OWN_TOPICS)
    ]
    return {
        "name": name,
        "progress": progress,
        "members": members,
        "partitions": partitions,
        "drawing": draw([topic for topic in read if topic not in own], name, own),
    }


class Box(NamedTuple):
    """A box of the drawing; `kind` is "topic" or "node"."""

    x: float
    y: float
    text: str
    kind: str


def draw(inputs: Sequence[str], name: str, own: Sequence[str]) -> dict[str, Any]:
    """Return boxes and lines of the drawing: inputs on the left, own topics on the right."""
    height = max(len(inputs), len(own), 1) * _ROW + 10
    middle = height / 2
    step = _WIDTH + _GAP

    def column(names: Sequence[str], x: float) -> list[Box]:
        top = middle - len(names) * _ROW / 2 + (_ROW - _BOX) / 2
        return [Box(x, top + index * _ROW, text, "topic") for index, text in enumerate(names)]

    left, right = column(inputs, 10), column(own, 10 + 2 * step)
    center = Box(10 + step, middle - _BOX / 2, name, "node")
    half = _BOX / 2
    return {
        "width": 3 * _WIDTH + 2 * _GAP + 20,
        "height": height,
        "box_width": _WIDTH,
        "box_height": _BOX,
        "boxes": [*left, center, *right],
        "lines": [
            *((box.x + _WIDTH, box.y + half, center.x, middle) for box in left),
            *((center.x + _WIDTH, middle, box.x, box.y + half) for box in right),
        ],
    }


def _group(view: View, group_id: str) -> GroupDetail | None:
    try:
        return describe_group(view.cluster, group_id)
    except ApiError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


PAGES = (
    Page("/streams", "streams.html", show_applications, "streams", refresh_s=5),
    Page("/stream", "stream.html", show_application, "streams", refresh_s=5),
)
