"""`kafka-broker-api-versions` (org.apache.kafka.tools.BrokerApiVersionsCommand)."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla.client.admin.cluster import describe_apis, describe_cluster
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Options, Spec
from ottla.tools.scripts.printing import as_json, err, out
from ottla.tools.scripts.session import cluster
from ottla.wire.api_keys import APIS

SPEC = Spec(
    "This tool helps to retrieve broker version information.",
    {"bootstrap-server": BOOTSTRAP, "command-config": COMMAND_CONFIG},
)


class Api(NamedTuple):
    """An API of a broker; `versions` is None if the broker does not serve it.

    `usable` is the highest version that the broker and this client share, None if there is none.
    """

    key: int
    name: str
    versions: tuple[int, int] | None
    usable: int | None
    is_too_new: bool


def run(options: Options) -> int:
    """Print the versions of every API, broker by broker."""
    options.require("bootstrap-server")
    rows = {}
    try:
        with cluster(options) as brokers:
            for broker in describe_cluster(brokers).brokers:
                offered = describe_apis(brokers, broker.node_id)
                rows[broker.node_id] = offered
                if not options.is_json:
                    rack = broker.rack or "null"
                    out(
                        f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {rack} isFenced: false) -> ("
                    )
                    out(",\n".join(_lines(offered)))
                    out(")")
    except OttlaError as error:
        err(str(error))
        return 1
    if options.is_json:
        as_json(rows)
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _lines(offered: Mapping[int, tuple[int, int]]) -> list[str]:
    lines = []
    for api in apis_of(offered):
        if api.versions is None:
            lines.append(f"\t{api.name}({api.key}): UNSUPPORTED")
            continue
        low, high = api.versions
        span = str(low) if low == high else f"{low} to {high}"
        usable = "" if api.usable is None else f" [usable: {api.usable}]"
        if api.is_too_new:
            usable = " [unusable: node too new]"
        lines.append(f"\t{api.name}({api.key}): {span}{usable}")
    return lines


def apis_of(offered: Mapping[int, tuple[int, int]]) -> list[Api]:
    """Return the APIs that a broker serves, and those that only this client knows, by key."""
    rows = []
    for key in sorted({*offered, *APIS}):
        versions = offered.get(key)
        name = APIS[key].name if key in APIS else "UNKNOWN"
        usable = None
        if versions is not None and key in APIS:
            usable = min(versions[1], APIS[key].max_version)
        is_too_new = versions is not None and usable is not None and usable < versions[0]
        rows.append(Api(key, name, versions, None if is_too_new else usable, is_too_new))
    return rows
