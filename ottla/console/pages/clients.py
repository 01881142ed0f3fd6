"""Clients that push metrics (KIP-714): the list, and the latest metrics of one."""

from collections.abc import Mapping
from typing import Any

from ottla.console.page import Page, View
from ottla.console.tables import arrange
from ottla.operations.survey.clients import (
    ClientMetric,
    ClientRow,
    describe_client,
    list_clients,
)

_SORTS = {
    "client": lambda row: (row.client_id, row.instance_id),
    "software": lambda row: (row.software_name, row.software_version),
    "broker": lambda row: row.broker,
    "age": lambda row: row.age_seconds,
    "metrics": lambda row: row.metric_count,
}
_METRIC_SORTS = {"name": lambda metric: (metric.name, sorted(metric.labels.items()))}
# More clients than brokers keep: the page itself divides the table.
_ALL = 1_000_000


def show_clients(view: View) -> Mapping[str, Any]:
    """Return the clients of all brokers that can be read, and the brokers that cannot."""
    listed = list_clients(view.cluster, limit=_ALL)
    table = arrange(listed.clients, view.query, _SORTS, _client_text)
    return {**table, "listed": listed, "bootstrap": view.cluster.bootstrap}


def show_client(view: View) -> Mapping[str, Any]:
    """Return one client with its metrics."""
    client = describe_client(view.cluster, view.path["client"])
    table = arrange(client.metrics, view.query, _METRIC_SORTS, _metric_text)
    return {**table, "client": client.row}


def _client_text(row: ClientRow) -> str:
    return f"{row.client_id} {row.instance_id} {row.software_name} {row.address}"


def _metric_text(metric: ClientMetric) -> str:
    return " ".join((metric.name, *metric.labels.values()))


PAGES = (
    Page("/clients", "clients.html", show_clients, "brokers", refresh_s=5),
    Page("/clients/{client}", "client.html", show_client, "brokers", refresh_s=5),
)
