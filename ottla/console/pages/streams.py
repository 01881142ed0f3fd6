"""Stream applications: the list, and an application with topology, lag, rate and instances."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.formats import number
from ottla.console.model.groups import describe_group
from ottla.console.page import Action, Done, Page, Source, View
from ottla.console.streams.applications import (
    ApplicationDetail,
    delete_topology,
    describe_application,
    list_applications,
    upload_topology,
)
from ottla.console.streams.describe_text import NodeKind, Topology, TopologyNode
from ottla.console.streams.drawing import draw_topology


def show_applications(view: View) -> Mapping[str, Any]:
    """Return the applications of the cluster."""
    return {"applications": list_applications(view.cluster, view.console.topologies)}


def show_application(view: View) -> Mapping[str, Any]:
    """Return an application with its topology and drawing."""
    detail = describe_application(view.cluster, view.console.topologies, _name(view))
    topology = detail.topology
    # Without a description, at least the topics that are read and its own are known.
    shown = topology or _known_topics(detail)
    return {
        "name": detail.name,
        "application": detail,
        "topology": topology,
        "drawing": draw_topology(shown, _notes(view, detail)),
    }


def read_rate(view: View) -> Mapping[str, Any]:
    """Return the sum of committed offsets of an application, from which the chart has its rate."""
    detail = describe_group(view.cluster, _name(view), with_seconds=False)
    total = sum(row.committed or 0 for row in detail.partitions)
    return {"at_ms": view.cluster.now_ms(), "values": {view.say("records") + "/s": total}}


def upload(view: View) -> Done:
    """Store the description of a topology."""
    name = view.form.text("application") or _name(view)
    if not name:
        raise ConfigError("field 'application' is empty: fill it in")
    text = view.form.get("text", "")
    change = upload_topology(view.cluster, view.console.topologies, name, text=text)
    return Done(view.say("The topology is stored."), view.url("stream", id=name), change)


def delete(view: View) -> Done:
    """Delete an uploaded description."""
    change = delete_topology(view.cluster, view.console.topologies, _name(view))
    return Done(view.say("The topology is deleted."), view.url("streams"), change)


def _name(view: View) -> str:
    return view.query.get("id", "")


def _known_topics(detail: ApplicationDetail) -> Topology:
    """Return the application as one node between the topics that it reads and its own."""
    read = {row.topic for row in detail.partitions} - set(detail.own_topics)
    own = tuple(TopologyNode(topic, NodeKind.TOPIC, 0, ()) for topic in detail.own_topics)
    names = detail.own_topics
    node = TopologyNode(detail.name, NodeKind.SOURCE, 0, names, tuple(sorted(read)))
    return Topology((node, *own))


def _notes(view: View, detail: ApplicationDetail) -> dict[str, str]:
    lags: dict[str, int] = {}
    for row in detail.partitions:
        if row.lag is not None:
            lags[row.topic] = lags.get(row.topic, 0) + row.lag
    return {topic: view.say("lag {lag}", lag=number(lag)) for topic, lag in lags.items()}


PAGES = (
    Page(
        "/streams",
        "streams.html",
        show_applications,
        "streams",
        actions={"upload": Action(upload, "topology.upload", "application")},
        refresh_s=5,
    ),
    Page(
        "/stream",
        "stream.html",
        show_application,
        "streams",
        actions={
            "upload": Action(upload, "topology.upload", "application"),
            "delete": Action(delete, "topology.delete"),
        },
        refresh_s=5,
    ),
)
SOURCES = (Source("/stream/rate.json", read_rate),)
