"""`kafka-client-metrics` (org.apache.kafka.tools.ClientMetricsCommand, KIP-714)."""

import uuid
from collections.abc import Callable

from ottla.base.errors import OttlaError
from ottla.client.brokers import Brokers
from ottla.operations.client_metrics import (
    alter_subscription,
    delete_subscription,
    describe_subscription,
    subscription_names,
)
from ottla.tools.text_files import is_number
from ottla_scripts.exits import NoSuchFile, UsageError
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Options, Spec
from ottla_scripts.java_errors import java_message
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool helps to manipulate and describe client metrics configurations.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "alter": Flag("Set the options of a subscription."),
        "delete": Flag("Delete a subscription."),
        "describe": Flag("Show subscriptions."),
        "list": Flag("List the names of subscriptions."),
        "name": Flag("The name of the subscription.", "name"),
        "generate-name": Flag("Choose a name for a new subscription."),
        "metrics": Flag("The prefixes of metrics.", "m1,m2"),
        "interval": Flag("The push interval in ms.", "push interval"),
        "match": Flag("Which clients, as in client_id=app; may be repeated.", "k1=v1,k2=v2"),
    },
)
_ACTIONS = ("alter", "delete", "describe", "list")
_KEYS = {"interval": "interval.ms", "match": "match", "metrics": "metrics"}
_CHANGES = ("generate-name", *_KEYS)


def run(options: Options) -> int:
    """Run the action of the command line."""
    if sum(name in options for name in _ACTIONS) != 1:
        raise UsageError(
            "Command must include exactly one action: --alter, --delete, --describe or --list."
        )
    options.require("bootstrap-server")
    if "delete" in options and "name" not in options:
        raise UsageError("A client metrics resource name must be specified with --delete.")
    for action in ("delete", "describe", "list"):
        options.forbid(action, *(["name"] if action == "list" else []), *_CHANGES)
    if "alter" in options and ("name" in options) == ("generate-name" in options):
        raise UsageError("One of --name or --generate-name must be specified with --alter.")
    interval = options["interval"]
    if "alter" in options and interval and not is_number(interval.removeprefix("-"), 32):
        raise UsageError("Invalid interval value. Enter an integer, or leave empty to reset.")
    actions: dict[str, Callable[[Brokers, Options], None]] = {
        "alter": _alter,
        "delete": _delete,
        "describe": _describe,
        "list": _list,
    }
    try:
        with cluster(options) as brokers:
            actions[next(name for name in _ACTIONS if name in options)](brokers, options)
    except NoSuchFile:
        # Apache Kafka's tool does not expect it.
        raise
    except OttlaError as error:
        out(f"Error while executing client metrics command : {java_message(error)}")
        return 1
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _list(brokers: Brokers, options: Options) -> None:
    names = subscription_names(brokers)
    if options.is_json:
        as_json(names)
    else:
        out("\n".join(names))


def _alter(brokers: Brokers, options: Options) -> None:
    name = options["name"] or str(uuid.uuid4())
    values = {key: ",".join(options.all(flag)) for flag, key in _KEYS.items() if flag in options}
    alter_subscription(brokers, name, values)
    out(f"Altered client metrics config for {name}.")


def _delete(brokers: Brokers, options: Options) -> None:
    delete_subscription(brokers, options["name"])
    out(f"Deleted client metrics config for {options['name']}.")


def _describe(brokers: Brokers, options: Options) -> None:
    known = subscription_names(brokers)
    names = known if options["name"] is None else [options["name"]]
    for name in names:
        if name not in known:
            out(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
            continue
        values = describe_subscription(brokers, name)
        if options.is_json:
            as_json({"name": name, **values})
            continue
        out(f"Client metrics configs for {name} are:")
        for key, value in values.items():
            out(f"  {key}={value}")
