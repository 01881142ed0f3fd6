"""Brokers: the list, and a broker's log directories, settings and APIs."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role
from ottla.console.model.brokers import (
    AbsentBroker,
    describe_broker,
    list_absent,
    list_api_versions,
    list_brokers,
)
from ottla.console.model.configs import ConfigKind, ConfigResource, describe_config
from ottla.console.model.controllers import read_controller_id
from ottla.console.model.partitions import elect_leaders
from ottla.console.page import Action, Done, NotFound, Page, View
from ottla.console.pages.settings import change_actions, settings_table
from ottla.operations.survey.metadata import Metadata, read_metadata


def show_brokers(view: View) -> Mapping[str, Any]:
    """Return the running brokers, and those that are absent."""
    metadata = read_metadata(view.cluster)
    controller_id = read_controller_id(view.cluster, metadata)
    brokers = list_brokers(view.cluster)
    known = {row.node_id for row in brokers}
    return {
        "brokers": brokers,
        "absent": absent_of(view, metadata),
        "controller_id": controller_id,
        "is_controller_apart": controller_id >= 0 and controller_id not in known,
    }


def absent_of(view: View, metadata: Metadata) -> list[AbsentBroker]:
    """Return the brokers that have replicas, or ran in the last week, but are not registered."""
    spans = view.console.timeline.brokers(view.cluster.name)
    seen: dict[int, int] = {}
    for span in spans:
        end_ms = view.cluster.now_ms() if span.end_ms is None else span.end_ms
        seen[span.node_id] = max(end_ms, seen.get(span.node_id, 0))
    return list_absent(metadata, seen)


def show_broker(view: View) -> Mapping[str, Any]:
    """Return a broker with its log directories."""
    return {"node": str(_node(view)), "broker": describe_broker(view.cluster, _node(view))}


def show_apis(view: View) -> Mapping[str, Any]:
    """Return the APIs that a broker serves."""
    return {"node": str(_node(view)), "apis": list_api_versions(view.cluster, _node(view))}


def show_settings(view: View) -> Mapping[str, Any]:
    """Return the options of a broker."""
    rows = describe_config(view.cluster, _resource(view))
    return {"node": view.path["node"], **settings_table(view, rows)}


def show_defaults(view: View) -> Mapping[str, Any]:
    """Return the options that are set for all brokers."""
    return settings_table(view, describe_config(view.cluster, _cluster_resource(view)))


def elect(view: View) -> Done:
    """Elect the preferred leaders of all partitions."""
    change = elect_leaders(view.cluster)
    return Done(view.say("The preferred leaders are elected."), change=change)


def _node(view: View) -> int:
    try:
        return int(view.path["node"])
    except ValueError:
        raise NotFound(f"{view.path['node']!r} is not the id of a broker") from None


def _resource(view: View) -> ConfigResource:
    return ConfigResource(ConfigKind.BROKER, str(_node(view)))


def _cluster_resource(view: View) -> ConfigResource:
    if "node" in view.path:
        raise ConfigError("the defaults of a cluster have no broker")
    return ConfigResource(ConfigKind.CLUSTER)


PAGES = (
    Page(
        "/brokers",
        "brokers.html",
        show_brokers,
        "brokers",
        actions={"elect": Action(elect, "partition.elect-preferred-leader", role=Role.ADMIN)},
        refresh_s=5,
    ),
    Page(
        "/brokers/defaults",
        "broker_defaults.html",
        show_defaults,
        "brokers",
        actions=change_actions(ConfigKind.CLUSTER, _cluster_resource, Role.ADMIN),
    ),
    Page("/brokers/{node}", "broker.html", show_broker, "brokers", refresh_s=5),
    Page(
        "/brokers/{node}/settings",
        "broker_settings.html",
        show_settings,
        "brokers",
        actions=change_actions(ConfigKind.BROKER, _resource, Role.ADMIN),
    ),
    Page("/brokers/{node}/apis", "broker_apis.html", show_apis, "brokers"),
)
