"""`kafka-groups` (org.apache.kafka.tools.GroupsCommand)."""

from ottla.base.errors import OttlaError
from ottla.client.admin import groups
from ottla_scripts.exits import NoSuchFile, UsageError
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Options, Spec
from ottla_scripts.groups.running import NO_BROKERS
from ottla_scripts.java_errors import is_authentication, java_message
from ottla_scripts.printing import as_json, err, left, out
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool helps to list groups of all types.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "list": Flag("List the groups."),
        "group-type": Flag("Only groups of this type.", "type"),
        "protocol": Flag("Only groups of this protocol.", "protocol"),
        "consumer": Flag("Only consumer groups."),
        "share": Flag("Only share groups."),
        "streams": Flag("Only streams groups."),
    },
)
_FILTERS = ("consumer", "share", "streams")
_TYPES = ("Classic", "Consumer", "Share", "Streams")


def run(options: Options) -> int:
    """List groups with type and protocol."""
    if "list" not in options:
        raise UsageError("Command must include exactly one action: --list.")
    if "bootstrap-server" not in options:
        raise UsageError("Missing required option(s) [bootstrap-server]")
    kind = (options["group-type"] or "").capitalize()
    if kind and kind not in _TYPES:
        raise UsageError("--group-type must be a valid group type.")
    for name in _FILTERS:
        others = ("consumer", "group-type", "protocol", "share", "streams")
        options.forbid(name, *(other for other in others if other != name))
    try:
        with cluster(options) as brokers:
            selected = [
                group for group in groups.list_groups(brokers) if _is_wanted(group, options, kind)
            ]
    except NoSuchFile:
        # Apache Kafka's tool does not expect it.
        raise
    except OttlaError as error:
        reason = NO_BROKERS if is_authentication(error) else java_message(error)
        out(f"Error while executing groups command : {reason}")
        return 1
    if options.is_json:
        as_json(
            [{"group": g.group_id, "type": g.type, "protocol": g.protocol_type} for g in selected]
        )
        return 0
    width = max([20, *(len(group.group_id) for group in selected)])
    out(left(("GROUP", "TYPE", "PROTOCOL"), (width, 20, 20)))
    for group in selected:
        # As with Apache Kafka's tool, a row ends with one space more than the header.
        cells = (group.group_id, group.type.capitalize(), group.protocol_type)
        out(f"{left(cells, (width, 20, 20))} ")
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _is_wanted(group: groups.GroupListing, options: Options, kind: str) -> bool:
    name = group.type.capitalize()
    if "consumer" in options and not (name == "Consumer" or group.protocol_type == "consumer"):
        return False
    if ("share" in options and name != "Share") or ("streams" in options and name != "Streams"):
        return False
    if kind and name != kind:
        return False
    return options["protocol"] in (None, group.protocol_type)
