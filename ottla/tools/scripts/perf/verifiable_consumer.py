"""`kafka-verifiable-consumer` (org.apache.kafka.tools.VerifiableConsumer)."""

from ottla.base.errors import OttlaError
from ottla.client.group.record_consumer import open_record_consumer
from ottla.client.transport import ConsumedRecord, RecordConsumer
from ottla.tools.scripts.argparse4j import require
from ottla.tools.scripts.console.settings import librdkafka_settings
from ottla.tools.scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Old, Options, Spec, integer
from ottla.tools.scripts.perf.verifiable import event, read_deprecated_file, text
from ottla.tools.scripts.printing import err
from ottla.tools.scripts.session import read_properties, unreachable_warning
from ottla.tools.signals import StopSignals

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
_POLL_S = 0.1
_AT_ONCE = 500


def run(options: Options) -> int:
    """Read records and print events."""
    require(options, "bootstrap-server", "topic", "group-id")
    read_deprecated_file(options, "consumer.config")
    event("startup_complete")
    mine: set[tuple[str, int]] = set()

    def changed(partitions: set[tuple[str, int]]) -> None:
        for kind, keys in (("assigned", partitions - mine), ("revoked", mine - partitions)):
            if keys:
                rows = [{"topic": topic, "partition": number} for topic, number in sorted(keys)]
                event(f"partitions_{kind}", partitions=rows)
        mine.clear()
        mine.update(partitions)

    bootstrap = options["bootstrap-server"]
    try:
        with (
            StopSignals() as stop,
            open_record_consumer(bootstrap, group_id=options["group-id"], settings=_settings(options),
                           on_down=unreachable_warning(bootstrap)) as consumer,
        ):  # fmt: skip
            consumer.subscribe([options["topic"]], changed)
            _read(consumer, options, stop)
    except OttlaError as error:
        err(str(error))
        return 1
    if mine:
        changed(set())
    event("shutdown_complete")
    event("shutdown_requested")
    return 0


def _settings(options: Options) -> dict[str, str]:
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
    return librdkafka_settings(properties)


def _read(consumer: RecordConsumer, options: Options, stop: StopSignals) -> None:
    limit, count = options["max-messages"], 0
    while not stop.requested and (limit < 0 or count < limit):
        room = _AT_ONCE if limit < 0 else min(_AT_ONCE, limit - count)
        events = consumer.poll(_POLL_S, limit=room)
        records = [item for item in events if isinstance(item, ConsumedRecord)]
        if records:
            count += len(records)
            positions = _report(records, is_verbose="verbose" in options)
            if "enable-autocommit" in options:
                consumer.store(positions)
            else:
                _commit(consumer, positions)


def _report(records: list[ConsumedRecord], *, is_verbose: bool) -> dict[tuple[str, int], int]:
    """Print the records, and return the positions behind them."""
    ranges: dict[tuple[str, int], list[int]] = {}
    for record in records:
        if is_verbose:
            event("record_data", key=text(record.key), value=text(record.value), topic=record.topic,
                  partition=record.partition, offset=record.offset)  # fmt: skip
        ranges.setdefault((record.topic, record.partition), []).append(record.offset)
    rows = [
        {"topic": topic, "partition": number, "count": len(span), "minOffset": span[0],
         "maxOffset": span[-1]}
        for (topic, number), span in ranges.items()
    ]  # fmt: skip
    event("records_consumed", count=len(records), partitions=rows)
    return {key: span[-1] + 1 for key, span in ranges.items()}


def _commit(consumer: RecordConsumer, positions: dict[tuple[str, int], int]) -> None:
    failure: dict[str, str] = {}
    try:
        consumer.commit(positions)
    except OttlaError as error:
        failure["error"] = str(error)
    listed = [
        {"topic": topic, "partition": number, "offset": offset}
        for (topic, number), offset in positions.items()
    ]
    event("offsets_committed", offsets=listed, **failure, success=not failure)
