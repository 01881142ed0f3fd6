"""`kafka-verifiable-producer` (org.apache.kafka.tools.VerifiableProducer)."""

from ottla.base.errors import OttlaError
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.tools.measuring.measured_producer import MeasuredProducer
from ottla.tools.measuring.verifiable import NumbersPlan, NumbersRun
from ottla.tools.signals import PATIENCE_S, StopSignals
from ottla_scripts.argparse4j import require, require_one
from ottla_scripts.definitions import check_options
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Flag,
    Old,
    Options,
    Spec,
    integer,
    long,
)
from ottla_scripts.java_errors import java_class, of_records
from ottla_scripts.perf.verifiable import event_printer, read_deprecated_file
from ottla_scripts.printing import err
from ottla_scripts.session import open_tolerantly, read_properties, unreachable_warning

SPEC = Spec(
    "This tool produces increasing integers to the specified topic and prints JSON metadata to stdout "
    "on each send request.",
    {
        "topic": Flag("The topic to write to.", "TOPIC"),
        "bootstrap-server": BOOTSTRAP,
        "max-messages": Flag("The number of records; -1: until stopped.", "N", integer, default=-1),
        "throughput": Flag("Records a second; -1: no limit.", "N", integer, default=-1),
        "acks": Flag("0, 1 or -1.", "ACKS", integer, default=-1, choices=("0", "1", "-1")),
        "producer.config": Flag("Use --command-config instead.", "CONFIG-FILE"),
        "command-config": COMMAND_CONFIG,
        "message-create-time": Flag(
            "The time of the first record, in ms since 1970.", "MS", long, default=-1
        ),
        "value-prefix": Flag("A number in front of each value.", "PREFIX", integer),
        "repeating-keys": Flag("Keys are 0 up to this number, again and again.", "N", integer),
    },
    {"broker-list": Old("bootstrap-server")},
    "verifiable-producer",
)


def run(options: Options) -> int:
    """Send numbers and print an event for each."""
    require(options, "topic")
    require_one(options, "bootstrap-server")
    read_deprecated_file(options, "producer.config")
    plan = NumbersPlan(
        topic=options["topic"],
        limit=options["max-messages"],
        rate=options["throughput"],
        prefix=options["value-prefix"],
        repeating_keys=options["repeating-keys"],
        create_time=options["message-create-time"],
    )
    name = options["command-config"]
    properties = read_properties(name) if name else {}
    properties |= {"acks": str(options["acks"]), "linger.ms": "0"}
    bootstrap = options["bootstrap-server"]

    def described(error: OttlaError) -> tuple[str, str]:
        return java_class(of_records(error, plan.topic))

    numbers = NumbersRun(plan, event_printer(is_endless=options["max-messages"] < 0), described)
    warn = unreachable_warning(bootstrap)
    try:
        check_options(Role.PRODUCER, properties)
        settings = librdkafka_settings(properties)
        with (
            StopSignals(patience_s=PATIENCE_S) as stop,
            open_tolerantly(
                lambda known: MeasuredProducer(
                    bootstrap, known, numbers.report, warn, continues=True
                ),
                settings,
            ) as producer,
        ):
            numbers.run(producer, stop)
    except OttlaError as error:
        err(str(error))
        return 1
    numbers.report_totals()
    return stop.exit_code
