"""`kafka-broker-api-versions` (org.apache.kafka.tools.BrokerApiVersionsCommand)."""

from collections.abc import Mapping

from ottla.base.errors import OttlaError
from ottla.client.admin.cluster import describe_apis, describe_cluster
from ottla.tools.broker.api_ranges import apis_of
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Options, Spec
from ottla_scripts.java_errors import java_message
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool helps to retrieve broker version information.",
    {"bootstrap-server": BOOTSTRAP, "command-config": COMMAND_CONFIG},
)


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
        err(java_message(error))
        return 1
    if options.is_json:
        as_json(rows)
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _lines(offered: Mapping[int, tuple[int, int]]) -> list[str]:
    """Return the lines of NodeApiVersions: what a broker offers, and what a client misses."""
    lines = []
    for api in apis_of(offered):
        if api.versions is None:
            lines.append(f"\t{api.name}({api.key}): UNSUPPORTED")
            continue
        low, high = api.versions
        span = str(low) if low == high else f"{low} to {high}"
        usable = "" if api.usable is None else f" [usable: {api.usable}]"
        if api.problem:
            usable = f" [unusable: {api.problem}]"
        lines.append(f"\t{api.name}({api.key}): {span}{usable}")
    return lines
