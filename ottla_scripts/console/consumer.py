"""`kafka-console-consumer` (org.apache.kafka.tools.consumer.ConsoleConsumer).

Without `--group` the script joins no group: it reads all partitions itself, which starts at once
and leaves nothing behind. Apache Kafka's tool joins a group with a random name. As there, an error
of the cluster ends the script with exit code 0, and a wrong setting with exit code 1.

Not done: without a group, partitions that are added while the script runs are not read.
"""

import re
import sys
import time
from collections.abc import Callable, Mapping

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.admin import offsets
from ottla.client.brokers import Brokers
from ottla.client.config.choices import reset_age_ms
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.errors import ClientError, HandshakeFailed, NotReachable
from ottla.client.group.record_consumer import open_record_consumer
from ottla.client.raw.consumer import ConsumedRecord, RecordConsumer
from ottla.client.security.options import security_of
from ottla.client.transport import TopicPartition
from ottla.tools.signals import StopSignals
from ottla_scripts.console.formatter import Format, format_as_json, formatter
from ottla_scripts.console.included import IncludedTopics, without_blacklist
from ottla_scripts.console.missing_topics import await_topic, await_topic_of_group
from ottla_scripts.definitions import check_options
from ottla_scripts.exits import Exit, RejectedOption, UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    VALUE_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    ZOOKEEPER,
    Flag,
    Old,
    Options,
    Spec,
    integer,
    long,
    pairs,
)
from ottla_scripts.java_errors import java_exception, of_records
from ottla_scripts.printing import begin_json, err, has_reader, out
from ottla_scripts.session import (
    check_addresses,
    log_handshake,
    open_tolerantly,
    read_client_file,
    unreachable_warning,
)

_EARLIEST, _LATEST = -2, -1
_DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
SPEC = Spec(
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    {
        "topic": Flag("The topic to read.", "topic"),
        "include": Flag("The topics to read, as a regular expression.", "Java regex (String)"),
        "partition": Flag("Read only this partition.", "partition", integer),
        "offset": Flag("earliest, latest or an offset; needs --partition.", "consume offset"),
        "consumer-property": Flag("Use --command-property instead.", "consumer_prop"),
        "command-property": Flag("An option of the consumer, as name=value.", "consumer_prop"),
        "consumer.config": Flag("Use --command-config instead.", "config file"),
        "command-config": COMMAND_CONFIG,
        "formatter": Flag("The class that formats records.", "class", default=_DEFAULT_FORMATTER),
        "property": Flag("Use --formatter-property instead.", "prop"),
        "formatter-property": Flag(
            "print.key, print.value, print.timestamp, print.partition, print.offset, "
            "print.headers, key.separator, line.separator, headers.separator, null.literal, "
            "key.deserializer, value.deserializer or headers.deserializer, as name=value.",
            "prop",
        ),
        "formatter-config": Flag("A properties file of the formatter.", "config file"),
        "from-beginning": Flag("Start with the earliest record."),
        "max-messages": Flag("Stop after this number of records.", "num_messages", integer),
        "timeout-ms": Flag("Stop if no record arrives in this time.", "timeout_ms", long),
        "skip-message-on-error": Flag("Skip a record that cannot be formatted."),
        "bootstrap-server": BOOTSTRAP,
        "key-deserializer": Flag("The class that reads keys.", "deserializer for key"),
        "value-deserializer": Flag("The class that reads values.", "deserializer for values"),
        "enable-systest-events": Flag("Print shutdown_complete at the end."),
        "isolation-level": Flag("read_committed or read_uncommitted.", "level"),
        "group": Flag("Read as a member of this group.", "consumer group id"),
    },
    {
        "zookeeper": ZOOKEEPER,
        "new-consumer": WITHOUT_EFFECT,
        "delete-consumer-offsets": WITHOUT_EFFECT,
        "csv-reporter-enabled": WITHOUT_EFFECT,
        "metrics-dir": VALUE_WITHOUT_EFFECT,
        "whitelist": Old("include"),
    },
)
_DEPRECATED = {
    "property": "formatter-property",
    "consumer-property": "command-property",
    "consumer.config": "command-config",
}
_POLL_S = 0.1
# As the logger of Apache Kafka's tool, which ends with exit code 0 after an error of a poll.
_NOT_STARTED = "ERROR Unknown error when running consumer:"
_ENDED = "ERROR Error processing message, terminating consumer process:"
_AT_ONCE = 500


rewrite = without_blacklist


def run(options: Options) -> int:
    """Copy records to standard output until a limit, a timeout or Ctrl-C."""
    _check(options)
    _print_notices(options)
    properties = _properties(options)
    write = formatter(options["formatter"], _formatter_properties(options))
    if options.is_json:
        begin_json()
        write = format_as_json
    copy = _Copy(options, write)
    try:
        with StopSignals() as stop:
            _read(options, properties, copy, stop)
            copy.code = stop.exit_code
    except ConfigError as error:
        err(f"{_NOT_STARTED} {error}")
        return 1
    except OttlaError as error:
        log_handshake(error)
        names = str(options["topic"] or options["include"])
        if isinstance(error, NotReachable) and not isinstance(error, HandshakeFailed):
            # Apache Kafka's tool waits for a broker without end.
            copy.code = 1
        err(f"{_ENDED} {java_exception(of_records(error, names, properties.get('group.id')))}")
    sys.stdout.flush()
    err(f"Processed a total of {copy.count} messages")
    if "enable-systest-events" in options and not options.is_json:
        sys.stdout.write("shutdown_complete\n")
    return copy.code


def _check(options: Options) -> None:
    if ("topic" in options) == ("include" in options):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    if "partition" in options:
        if "topic" not in options:
            raise UsageError("The topic is required when partition is specified.")
        if "from-beginning" in options and "offset" in options:
            raise UsageError("Options from-beginning and offset cannot be specified together.")
    elif "offset" in options:
        raise UsageError("The partition is required when offset is specified.")
    options.require("bootstrap-server")
    for old, new in _DEPRECATED.items():
        if old in options and new in options:
            raise UsageError(f"Options --{old} and --{new} cannot be specified together.")
    _offset(options)
    # Read here, because an error must not wait until the topic exists.
    for name in ("partition", "max-messages", "timeout-ms"):
        options[name]


def _print_notices(options: Options) -> None:
    for old, new in _DEPRECATED.items():
        if old in options:
            # With --output json, standard output has only records.
            (err if options.is_json else out)(
                f"Option --{old} is deprecated and will be removed in a future version. "
                f"Use --{new} instead."
            )


def _offset(options: Options) -> int:
    """Return the start position of --partition."""
    text = options["offset"]
    if text is None:
        return _EARLIEST if "from-beginning" in options else _LATEST
    word = text.lower()
    if word in ("earliest", "latest"):
        return _EARLIEST if word == "earliest" else _LATEST
    if re.fullmatch(r"\+?\d+", text):
        return int(text)
    raise UsageError(
        f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', "
        "or a non-negative long."
    )


def _properties(options: Options) -> dict[str, str]:
    name = options["command-config"] or options["consumer.config"]
    from_file = read_client_file(name)
    from_flags = pairs([*options.all("consumer-property"), *options.all("command-property")])
    groups = {source["group.id"] for source in (from_file, from_flags) if "group.id" in source}
    if options["group"] is not None:
        groups.add(options["group"])
    if len(groups) > 1:
        listed = ", ".join(f"'{group}'" for group in sorted(groups))
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer.config') do not match. "
            f"Detected group ids: {listed}"
        )
    if groups and "partition" in options:
        raise UsageError("Options group and partition cannot be specified together.")
    properties = {**from_file, **from_flags, **({"group.id": groups.pop()} if groups else {})}
    reset = properties.get("auto.offset.reset")
    if reset is not None and reset != "earliest" and "from-beginning" in options:
        err(
            "Can't simultaneously specify --from-beginning and 'auto.offset.reset="
            f"{reset}', please remove one option"
        )
        raise Exit(1)
    start = "earliest" if "from-beginning" in options else "latest"
    properties.setdefault("auto.offset.reset", start)
    properties.setdefault("client.id", "console-consumer")
    level = options["isolation-level"]
    if level is not None or "isolation.level" not in properties:
        properties["isolation.level"] = level or "read_uncommitted"
    return properties


def _formatter_properties(options: Options) -> dict[str, str]:
    name = options["formatter-config"]
    properties = read_client_file(name, keeps_spaces=True)
    properties |= pairs([*options.all("property"), *options.all("formatter-property")])
    for part in ("key", "value"):
        if options[f"{part}-deserializer"]:
            properties[f"{part}.deserializer"] = options[f"{part}-deserializer"]
    return properties


class _Copy:
    """The records that were written, and the limits."""

    def __init__(self, options: Options, write: Format) -> None:
        limit = options["max-messages"]
        self.limit: int | None = None if limit is None or limit < 0 else limit
        self.count = 0
        self.code = 0
        self.positions: dict[TopicPartition, int] = {}
        self._write = write
        self._skips = "skip-message-on-error" in options

    @property
    def is_done(self) -> bool:
        """True after --max-messages records."""
        return self.limit is not None and self.count >= self.limit

    @property
    def room(self) -> int:
        """The number of records that may be requested at once."""
        return _AT_ONCE if self.limit is None else min(_AT_ONCE, self.limit - self.count)

    def take(self, records: list[ConsumedRecord]) -> None:
        """Write records."""
        for record in records:
            self.count += 1
            try:
                sys.stdout.buffer.write(self._write(record))
            except OttlaError as error:
                if not self._skips:
                    self.code = 1
                    raise
                err(f"Error processing message, skipping this message: {error}")
            self.positions[record.topic, record.partition] = record.offset + 1


def _read(options: Options, properties: Mapping[str, str], copy: _Copy, stop: StopSignals) -> None:
    group = properties.get("group.id")
    try:
        check_addresses(options["bootstrap-server"])
    except RejectedOption as error:
        raise ConfigError(str(error)) from error
    check_options(Role.CONSUMER, properties)
    included = None
    if "include" in options:
        included = IncludedTopics(options["include"], options["bootstrap-server"], properties)
    joins = group is not None or included is not None
    # Without a group the script looks up where to start.
    is_by_age = not joins and reset_age_ms(properties["auto.offset.reset"]) is not None
    settings = librdkafka_settings(
        {**properties, "auto.offset.reset": "latest"} if is_by_age else properties
    )
    bootstrap = options["bootstrap-server"]
    timeout_ms = options["timeout-ms"]
    patience_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
    deadline = None if patience_s is None else time.monotonic() + patience_s

    def goes_on() -> bool:
        return not stop.requested and (deadline is None or time.monotonic() < deadline)

    starts = {} if joins else _starts(options, properties, goes_on)
    if not joins and not starts:
        return
    if joins and group is None:
        group = f"console-consumer-{time.time_ns() % 100_000}"
        settings["enable.auto.commit"] = "false"
    sys.stdout.flush()
    warn = unreachable_warning(bootstrap)
    try:
        opened = open_tolerantly(
            lambda known: open_record_consumer(
                bootstrap, group_id=group, settings=known, on_down=warn
            ),
            settings,
        )
    except OttlaError as error:
        raise ConfigError(str(error)) from error
    with opened as consumer:
        if joins:
            exists = (
                await_topic_of_group(bootstrap, options["topic"], properties, goes_on)
                if included is None
                else bool(included.wait(goes_on))
            )
            if not exists:
                return
            names = [options["topic"]] if included is None else included.names
            consumer.subscribe(names, lambda mine: None)
        else:
            consumer.assign(starts)
        _copy(consumer, copy, stop, patience_s, included)
        if group is not None and settings.get("enable.auto.commit") != "false":
            consumer.store(copy.positions)


def _copy(
    consumer: RecordConsumer,
    copy: _Copy,
    stop: StopSignals,
    patience_s: float | None,
    included: IncludedTopics | None,
) -> None:
    last = time.monotonic()
    while not copy.is_done and not stop.requested:
        events = consumer.poll(0, limit=copy.room) or consumer.poll(_POLL_S)
        records = [event for event in events if isinstance(event, ConsumedRecord)]
        if records:
            copy.take(records)
            if not has_reader():
                err("Unable to write to standard out, closing consumer.")
                return
            last = time.monotonic()
        elif patience_s is not None and time.monotonic() - last > patience_s:
            return
        if included is not None and included.has_changed():
            consumer.subscribe(included.names, lambda mine: None)


def _starts(
    options: Options, properties: Mapping[str, str], goes_on: Callable[[], bool]
) -> dict[TopicPartition, int]:
    """Return the start of each partition; waits for a topic or a partition that does not exist yet.

    That is read from its beginning: the first record is newer than this script.
    """
    name = options["topic"]
    if "partition" in options and _offset(options) >= 0:
        return {(name, options["partition"]): _offset(options)}
    reset = properties["auto.offset.reset"]
    with Brokers(
        options["bootstrap-server"],
        client_id=properties["client.id"],
        security=security_of(properties),
    ) as brokers:
        keys, is_new = await_topic(brokers, name, properties, goes_on)
        if not keys:
            return {}
        if "partition" not in options:
            return _reset(brokers, keys, "earliest" if is_new and reset != "none" else reset)
        key = (name, options["partition"])
        while key not in keys:
            if not goes_on():
                return {}
            is_new = True
            time.sleep(_POLL_S)
            keys, _ = await_topic(brokers, name, properties, goes_on)
        return _listed(brokers, [key], _EARLIEST if is_new else _offset(options))


def _reset(brokers: Brokers, keys: list[TopicPartition], reset: str) -> dict[TopicPartition, int]:
    """Return the offsets that `auto.offset.reset` selects."""
    if reset == "none":
        listed = ", ".join(f"{topic}-{number}" for topic, number in keys)
        raise ClientError(f"Undefined offset with no reset policy for partitions: [{listed}]")
    age_ms = reset_age_ms(reset)
    if age_ms is None:
        return _listed(brokers, keys, _EARLIEST if reset == "earliest" else _LATEST)
    # The end first: a record that arrives in between must not be skipped.
    ends = _listed(brokers, keys, _LATEST)
    found = _listed(brokers, keys, max(0, time.time_ns() // 1_000_000 - age_ms))
    return {key: offset if offset >= 0 else ends[key] for key, offset in found.items()}


def _listed(
    brokers: Brokers, keys: list[TopicPartition], timestamp: int
) -> dict[TopicPartition, int]:
    # librdkafka takes half a second to resolve the logical offsets.
    results = offsets.list_offsets(brokers, dict.fromkeys(keys, timestamp))
    return {key: result.offset for key, result in results.items()}
