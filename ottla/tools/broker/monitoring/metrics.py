"""`ottla broker metrics [PATTERN]`: the values of the brokers' metrics, as JMX beans name them."""

import json
import re
from collections.abc import Mapping
from typing import Any

import click

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.broker.monitoring.beans import Address, BeanReader
from ottla.tools.http_addresses import http_addresses, parse_address
from ottla.tools.output import Output

_COLUMNS = ("broker", "name", "attribute", "value")
_ALL = "*:*"
_FORMS = "the HOST:PORT of a broker's option metrics.listener"


@click.command("metrics")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]…")
@click.option("--attribute", "-a", "attributes", multiple=True, metavar="NAME",
              help="Only this attribute, like Value or Count; may be repeated.")  # fmt: skip
@click.option("--broker", "node_ids", type=int, multiple=True, metavar="ID",
              help="Only this broker; may be repeated.")  # fmt: skip
@click.option("--http", metavar="HOST:PORT",
              help="The HTTP address of a single broker (default: each broker's metrics.listener).")  # fmt: skip
@options.connected
def command(
    brokers: Brokers,
    output: Output,
    patterns: tuple[str, ...],
    attributes: tuple[str, ...],
    node_ids: tuple[int, ...],
    http: str | None,
) -> None:
    """Show the metrics whose name matches a PATTERN, or all.

    A PATTERN is a whole name with the wildcards * and ?, or a part of a name; case does not matter.
    The names come from Apache Kafka's JMX beans. The brokers need the option metrics.listener.

    \b
    ottla broker metrics UnderReplicatedPartitions
    ottla broker metrics 'kafka.server:type=BrokerTopicMetrics,name=Bytes*' -a OneMinuteRate
    ottla broker metrics --http localhost:9308 LeaderCount --output json
    """
    expressions = [_expression(pattern) for pattern in patterns]
    rows = []
    for broker, address in sorted(_addresses(brokers, node_ids, http).items()):
        beans = _read(Address(*address))
        rows += [
            {"broker": broker, "name": name, "attribute": attribute, "value": value}
            for name in sorted(beans)
            if not expressions or any(pattern.fullmatch(name) for pattern in expressions)
            for attribute, value in beans[name].items()
            if not attributes or attribute in attributes
        ]
    if not rows:
        raise OttlaError("no metric matches: `ottla broker metrics` shows all names and attributes")
    output.rows(rows if output.is_json else list(map(_texts, rows)), _COLUMNS)


def _expression(pattern: str) -> re.Pattern[str]:
    has_wildcard = "*" in pattern or "?" in pattern
    text = pattern if has_wildcard else f"*{pattern}*"
    parts = {"*": ".*", "?": "."}
    expression = "".join(parts.get(letter, re.escape(letter)) for letter in text)
    return re.compile(expression, re.IGNORECASE | re.DOTALL)


def _addresses(
    brokers: Brokers, node_ids: tuple[int, ...], http: str | None
) -> Mapping[int | None, tuple[str, int]]:
    """Return the HTTP address of each broker that is to be read."""
    if http is not None:
        if node_ids:
            raise click.UsageError("Give either --broker or --http.")
        try:
            return {None: parse_address(http)}
        except ValueError as error:
            raise click.UsageError(f"--http {error}.") from error
    known = brokers.node_ids()
    unknown = sorted(set(node_ids) - set(known))
    if unknown:
        raise ConfigError(
            f"broker {unknown[0]} is not running: `ottla cluster info` lists the brokers"
        )
    served = http_addresses(brokers)
    for node_id in node_ids or known:
        if node_id not in served:
            raise ConfigError(
                f"broker {node_id} has no HTTP port: set its option metrics.listener=HOST:PORT "
                "(`ottla up --metrics-port PORT`), or name the port with --http"
            )
    return {node_id: served[node_id] for node_id in node_ids or known}


def _read(address: Address) -> Mapping[str, Mapping[str, Any]]:
    name = f"{address.host}:{address.port}"
    reader = BeanReader(address, name, _FORMS)
    if not reader.answers():
        raise OttlaError(f"nothing listens on {name}: name {_FORMS} with --http")
    return reader.read(_ALL)


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the table: a value with several parts is written as JSON."""
    value = row["value"]
    return row | {"value": json.dumps(value) if isinstance(value, dict | list) else value}
