"""`kafka-broker-api-versions` (org.apache.kafka.tools.BrokerApiVersionsCommand)."""

from ottla.base.errors import OttlaError
from ottla.client.admin.cluster import describe_cluster
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Options, Spec
from ottla.tools.scripts.printing import as_json, err, out
from ottla.tools.scripts.session import cluster
from ottla.wire.api_keys import APIS
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SPEC = Spec(
    "This tool helps to retrieve broker version information.",
    {"bootstrap-server": BOOTSTRAP, "command-config": COMMAND_CONFIG},
)


def run(options: Options) -> int:
    """Print the versions of every API, broker by broker."""
    options.require("bootstrap-server")
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
    rows = {}
    try:
        with cluster(options) as brokers:
            for broker in describe_cluster(brokers).brokers:
                response = brokers.ask_node(broker.node_id, request, ApiVersionsResponse)
                offered = {
                    row.api_key: (row.min_version, row.max_version) for row in response.api_keys
                }
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


def _lines(offered: dict[int, tuple[int, int]]) -> list[str]:
    lines = []
    for key in sorted({*offered, *APIS}):
        name = APIS[key].name if key in APIS else "UNKNOWN"
        if key not in offered:
            lines.append(f"\t{name}({key}): UNSUPPORTED")
            continue
        low, high = offered[key]
        span = str(low) if low == high else f"{low} to {high}"
        usable = ""
        if key in APIS:
            common = min(high, APIS[key].max_version)
            usable = f" [usable: {common}]" if common >= low else " [unusable: node too new]"
        lines.append(f"\t{name}({key}): {span}{usable}")
    return lines
