"""`kafka-verifiable-consumer` (org.apache.kafka.tools.VerifiableConsumer)."""

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.group.record_consumer import open_record_consumer
from ottla.tools.measuring.verifiable import EventsOfConsumer
from ottla.tools.signals import StopSignals
from ottla_scripts.argparse4j import require
from ottla_scripts.console.missing_topics import await_topic_of_group
from ottla_scripts.definitions import check_options
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Old, Options, Spec, integer
from ottla_scripts.perf.verifiable import event_printer, read_deprecated_file
from ottla_scripts.printing import err
from ottla_scripts.session import open_tolerantly, read_properties, unreachable_warning

SPEC = Spec(
    "This tool consumes messages from a specific topic and emits consumer events (e.g. group rebalances, "
    "received messages, and offsets committed) as JSON objects to STDOUT.",
    {
        "topic": Flag("The topic to read.", "TOPIC"),
        "bootstrap-server": BOOTSTRAP,
        "group-id": Flag("The group.", "GROUP_ID"),
        "group-protocol": Flag("classic or consumer.", "PROTOCOL", default="classic"),
        "group-remote-assignor": Flag("The server's assignor, for the protocol consumer.", "NAME"),
        "group-instance-id": Flag("The id of a static member.", "ID"),
        "max-messages": Flag("The number of records; -1: until stopped.", "N", integer, default=-1),
        "session-timeout": Flag("Set session.timeout.ms.", "MS", integer, default=30_000),
        "verbose": Flag("Print an event for each record."),
        "enable-autocommit": Flag("Commit in the background."),
        "reset-policy": Flag("earliest or latest.", "POLICY", default="earliest"),
        "assignment-strategy": Flag("The assignor's Java class.", "CLASS"),
        "consumer.config": Flag("Use --command-config instead.", "CONFIG-FILE"),
        "command-config": COMMAND_CONFIG,
    },
    {"broker-list": Old("bootstrap-server")},
    "verifiable-consumer",
)


def run(options: Options) -> int:
    """Read records and print events."""
    require(options, "bootstrap-server", "topic", "group-id")
    read_deprecated_file(options, "consumer.config")
    event = event_printer(is_endless=options["max-messages"] < 0)
    properties = _properties(options)
    try:
        check_options(Role.CONSUMER, properties)
    except ConfigError as error:
        err(str(error))
        return 1
    event("startup_complete")
    events = EventsOfConsumer(
        event, is_verbose="verbose" in options, stores="enable-autocommit" in options
    )
    bootstrap = options["bootstrap-server"]
    warn = unreachable_warning(bootstrap)
    try:
        with (
            StopSignals() as stop,
            open_tolerantly(
                lambda known: open_record_consumer(
                    bootstrap, group_id=options["group-id"], settings=known, on_down=warn
                ),
                librdkafka_settings(properties),
            ) as consumer,
        ):
            await_topic_of_group(
                bootstrap, options["topic"], properties, lambda: not stop.requested
            )
            events.run(consumer, [options["topic"]], options["max-messages"], stop)
    except OttlaError as error:
        err(str(error))
        return 1
    events.report_end(is_stopped=stop.requested)
    return stop.exit_code


def _properties(options: Options) -> dict[str, str]:
    name = options["command-config"]
    properties = {
        **(read_properties(name) if name else {}),
        "auto.offset.reset": options["reset-policy"],
        "session.timeout.ms": str(options["session-timeout"]),
        "enable.auto.commit": str("enable-autocommit" in options).lower(),
    }
    if options["group-instance-id"]:
        properties["group.instance.id"] = options["group-instance-id"]
    if options["group-protocol"].lower() == "consumer":
        properties["group.protocol"] = "consumer"
        del properties["session.timeout.ms"]
        if options["group-remote-assignor"]:
            properties["group.remote.assignor"] = options["group-remote-assignor"]
    if options["assignment-strategy"]:
        properties["partition.assignment.strategy"] = options["assignment-strategy"]
    return properties
