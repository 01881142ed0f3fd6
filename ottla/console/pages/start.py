"""The start page with all clusters, the search over everything, and the list of keys."""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.base.errors import OttlaError
from ottla.console.model.configs import ConfigKind, ConfigResource, describe_config
from ottla.console.model.groups import list_groups
from ottla.console.model.overview import Overview, read_overview
from ottla.console.page import Page, Source, View
from ottla.operations.survey.metadata import read_metadata

_MAX_RESULTS = 40
# Pages by the words of their names, for the search.
_PAGES = {
    "Overview": "overview",
    "Brokers": "brokers",
    "Topics": "topics",
    "Create a topic": "create-topic",
    "Groups": "groups",
    "Streams": "streams",
    "Transactions": "transactions",
    "ACL & users": "acls",
    "Quotas": "quotas",
    "Reassign partitions": "reassignments",
    "Clients": "clients",
    "Leaders over time": "timeline",
    "SQL": "sql",
}
# Pages of no cluster.
_GLOBAL_PAGES = {"Alerts": "/alerts"}


def show_clusters(view: View) -> Mapping[str, Any]:
    """Return an overview of each cluster, or the reason why it cannot be read."""
    rows: list[tuple[str, Overview | None, str]] = []
    for name in filter(view.may_see, view.console.clusters.names()):
        try:
            rows.append((name, read_overview(view.console.clusters.get(name)), ""))
        except OttlaError as error:
            rows.append((name, None, str(error)))
    return {"rows": rows}


def show_shortcuts(view: View) -> Mapping[str, Any]:
    """Return nothing: the template has the keys."""
    return {}


def search(view: View) -> Mapping[str, Any]:
    """Return pages, topics, groups, brokers and options whose names contain a text."""
    text = view.query.text("q").lower()
    results = []
    for name, kind, url in _everything(view, bool(text)):
        if text in name.lower():
            results.append({"name": name, "kind": view.say(kind), "url": url})
        if len(results) >= _MAX_RESULTS:
            break
    return {"results": results}


def _everything(view: View, with_entities: bool) -> Iterator[tuple[str, str, str]]:
    for label, path in _PAGES.items():
        yield view.say(label), "page", view.url(*path.split("/"))
    for label, path in _GLOBAL_PAGES.items():
        yield view.say(label), "page", view.global_url(path)
    if not with_entities:
        return
    # Names only: lists of topics and brokers would also read offsets and sizes of all partitions.
    metadata = read_metadata(view.cluster)
    for topic in metadata.topics:
        yield topic, "topic", view.url("topics", topic)
    for group in list_groups(view.cluster):
        yield group.group_id, "group", view.url("group", id=group.group_id)
    brokers = list(metadata.nodes.values())
    for broker in brokers:
        name = f"{broker.node_id} {broker.host}:{broker.port}"
        yield name, "broker", view.url("brokers", str(broker.node_id))
    if brokers:
        node = str(brokers[0].node_id)
        resource = ConfigResource(ConfigKind.BROKER, node)
        rows = view.cluster.cached(
            ("options", node), 60.0, lambda: describe_config(view.cluster, resource)
        )
        for row in rows:
            yield row.name, "broker option", view.url("brokers", node, "settings", q=row.name)


PAGES = (
    Page("/", "clusters.html", show_clusters, is_global=True, refresh_s=5),
    Page("/shortcuts", "shortcuts.html", show_shortcuts, is_global=True),
)
SOURCES = (Source("/search.json", search),)
