"""Clients and the metrics that they push to the brokers of Ottla (KIP-714), from their HTTP ports.

A client pushes to one broker at a time, and that broker keeps its latest push: every broker with an
HTTP address is read. A broker writes each client on a line of its own, and is read line by line.

Not done: the subscriptions, which are options of the cluster, and former values of the metrics.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ottla.base.errors import ApiError, ErrorCode
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.http import HttpError, get_lines
from ottla.operations.survey.metadata import read_metadata

T = TypeVar("T")

_PATH = "/clients"
_START = b'{"clients"'
_TTL_S = 1.0
_STALE_S = 10.0


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A client that has pushed metrics to a broker; unknown texts are empty.

    `instance_id` is the id that the broker assigned to the client. `age_seconds` is the time since
    its last push. `is_terminating` if that was the push of a client that is closed. `metric_count`
    counts the values of that push.
    """

    instance_id: str
    client_id: str
    software_name: str
    software_version: str
    address: str
    broker: int
    age_seconds: float
    is_terminating: bool
    metric_count: int


@dataclass(frozen=True, slots=True)
class UnreadBroker:
    """A broker whose HTTP port does not return its clients, and the reason."""

    node_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class ClientList:
    """The clients by id. `brokers` are those with an HTTP address: without any, none can be read.

    `total` counts the clients before the limit. Clients of the brokers in `unread` and in
    `brokers_without_address` are not in the list.
    """

    clients: tuple[ClientRow, ...]
    total: int
    brokers: tuple[int, ...]
    unread: tuple[UnreadBroker, ...]
    brokers_without_address: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClientMetric:
    """A value of a client; None if it is not finite.

    With `is_delta` it is the increase of a sum since the client's push before the last one.
    """

    name: str
    labels: Mapping[str, str]
    value: float | None
    is_delta: bool


@dataclass(frozen=True, slots=True)
class ClientDetail:
    """A client with the metrics of its last push by name."""

    row: ClientRow
    metrics: tuple[ClientMetric, ...]


class _Read(NamedTuple):
    """The clients of all brokers, and the reasons of those that were not read."""

    clients: tuple[ClientRow, ...]
    unread: tuple[UnreadBroker, ...]


def list_clients(
    connection: ClusterConnection, *, client_id: str = "", limit: int = 1000
) -> ClientList:
    """Return the clients that push metrics to the cluster's brokers (KIP-714). A `client_id`
    selects some; at most `limit` are returned.
    """
    read = connection.cached("clients", _TTL_S, partial(_read_all, connection), stale_s=_STALE_S)
    clients = [row for row in read.clients if client_id in ("", row.client_id)]
    urls = connection.settings.http_urls
    return ClientList(
        clients=tuple(clients[: max(0, limit)]),
        total=len(clients),
        brokers=tuple(sorted(urls)),
        unread=read.unread,
        brokers_without_address=tuple(sorted(set(read_metadata(connection).nodes) - set(urls))),
    )


def describe_client(connection: ClusterConnection, instance_id: str) -> ClientDetail:
    """Return a client with the metrics of its last push; ApiError RESOURCE_NOT_FOUND if no broker
    that can be read has one.
    """
    # The text as JSON has it: most lines are of other clients, and are not parsed.
    mark = json.dumps(instance_id).encode()
    details, unread = _ask_all(connection, partial(_detail, mark=mark))
    matching = [detail for detail in details if detail.row.instance_id == instance_id]
    if not matching:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, _not_found(connection, instance_id, unread))
    return min(matching, key=lambda detail: detail.row.age_seconds)


def _not_found(
    connection: ClusterConnection, instance_id: str, unread: tuple[UnreadBroker, ...]
) -> str:
    if not connection.settings.http_urls:
        return f"No broker of cluster {connection.name!r} has an HTTP address to read clients from."
    sentence = (
        f"No broker has metrics of a client with the instance id {instance_id!r}. A broker forgets "
        "a client that stops pushing: choose another one from the list."
    )
    reasons = "; ".join(f"broker {row.node_id}: {row.reason}" for row in unread)
    return f"{sentence} Not all brokers could be read: {reasons}." if reasons else sentence


def _read_all(connection: ClusterConnection) -> _Read:
    rows, unread = _ask_all(connection, _row)
    latest: dict[str, ClientRow] = {}
    for row in sorted(rows, key=lambda row: row.age_seconds, reverse=True):
        # A client that has changed its broker is known to both for a while.
        latest[row.instance_id] = row
    clients = sorted(latest.values(), key=lambda row: (row.client_id, row.instance_id))
    return _Read(tuple(clients), unread)


def _ask_all(
    connection: ClusterConnection, parse: Callable[[int, bytes], T | None]
) -> tuple[list[T], tuple[UnreadBroker, ...]]:
    """Return the parsed lines of all brokers, and the brokers that were not read completely."""

    def ask(node: int, url: str) -> tuple[list[T], UnreadBroker | None]:
        parsed = []
        try:
            for line in _client_lines(url, connection.timeout_s):
                value = parse(node, line)
                if value is not None:
                    parsed.append(value)
        except HttpError as error:
            return parsed, UnreadBroker(node, str(error))
        except (ValueError, KeyError, TypeError, AttributeError):
            return parsed, UnreadBroker(node, f"{url}{_PATH} returns no list of clients")
        return parsed, None

    urls = connection.settings.http_urls
    responses = connection.in_parallel({node: partial(ask, node, urls[node]) for node in urls})
    unread = [row for _, row in responses.values() if row is not None]
    return (
        [value for parsed, _ in responses.values() for value in parsed],
        tuple(sorted(unread, key=lambda row: row.node_id)),
    )


def _client_lines(url: str, timeout_s: float) -> Iterator[bytes]:
    """Yield the line of each client; ValueError if the page is not the list of clients."""
    lines = get_lines(url, _PATH, timeout_s)
    if not next(lines, b"").startswith(_START):
        raise ValueError("the page is not the list of clients")
    for line in lines:
        if line.startswith(b"{"):
            yield line.rstrip(b",\n")


def _row(node: int, line: bytes) -> ClientRow:
    return _row_of(node, json.loads(line))


def _row_of(node: int, client: Mapping[str, Any]) -> ClientRow:
    host, port = client.get("client_source_address"), client.get("client_source_port")
    return ClientRow(
        instance_id=client["instance_id"],
        client_id=client.get("client_id") or "",
        software_name=client.get("client_software_name") or "",
        software_version=client.get("client_software_version") or "",
        address=f"{host}:{port}" if host and port else host or "",
        broker=node,
        age_seconds=client["age_seconds"],
        is_terminating=client["is_terminating"],
        metric_count=len(client["metrics"]),
    )


def _detail(node: int, line: bytes, *, mark: bytes) -> ClientDetail | None:
    if mark not in line:
        return None
    client = json.loads(line)
    metrics = [
        ClientMetric(metric["name"], metric["labels"], metric["value"], metric["is_delta"])
        for metric in client["metrics"]
    ]
    metrics.sort(key=lambda metric: (metric.name, sorted(metric.labels.items())))
    return ClientDetail(_row_of(node, client), tuple(metrics))
