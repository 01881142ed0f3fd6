"""`kafka-console-producer` (org.apache.kafka.tools.ConsoleProducer).

A record that the cluster does not take is an error with exit code 1; Apache Kafka's tool logs it
and succeeds.

Not done: `--line-reader` knows only Apache Kafka's own reader; `--max-block-ms` has no effect.
"""

import sys
from collections.abc import Iterator
from typing import cast

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.raw.producer import RecordProducer
from ottla_scripts.console.java_lines import Stream, java_lines
from ottla_scripts.console.line_reader import LineError, LineReader
from ottla_scripts.definitions import check_options
from ottla_scripts.exits import NoSuchFile, RejectedOption, UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    VALUE_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    Flag,
    Old,
    Options,
    Spec,
    integer,
    long,
    pairs,
)
from ottla_scripts.java_errors import java_exception, of_records
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import (
    check_addresses,
    check_bootstrap,
    log_handshake,
    open_tolerantly,
    read_client_file,
    unreachable_warning,
)

SPEC = Spec(
    "This tool helps to read data from standard input and publish it to Kafka.",
    {
        "topic": Flag("The topic to write to.", "topic"),
        "bootstrap-server": BOOTSTRAP,
        "sync": Flag("Wait for each record before the next one is sent."),
        "compression-codec": Flag(
            "none, gzip (without a value), snappy, lz4 or zstd.", "codec", is_optional=True
        ),
        "batch-size": Flag("batch.size in bytes.", "size", integer),
        "message-send-max-retries": Flag("Set retries.", "number", integer, default=3),
        "retry-backoff-ms": Flag("Set retry.backoff.ms.", "ms", long, default=100),
        "timeout": Flag("Set linger.ms.", "timeout_ms", long),
        "request-required-acks": Flag("Set acks.", "acks", default="-1"),
        "request-timeout-ms": Flag("Set request.timeout.ms.", "ms", integer, default=1500),
        "metadata-expiry-ms": Flag("Set metadata.max.age.ms.", "ms", long, default=300_000),
        "max-block-ms": Flag("Set max.block.ms.", "ms", long),
        "max-memory-bytes": Flag("Set buffer.memory.", "bytes", long, default=32 << 20),
        "max-partition-memory-bytes": Flag("Use --batch-size instead.", "bytes", integer),
        "line-reader": Flag("The class that reads lines.", "reader_class"),
        "socket-buffer-size": Flag("Set send.buffer.bytes.", "size", integer, default=102_400),
        "property": Flag("Use --reader-property instead.", "prop"),
        "reader-property": Flag(
            "parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, "
            "headers.key.separator, null.marker or ignore.error, as name=value.",
            "prop",
        ),
        "reader-config": Flag("A properties file of the reader.", "config file"),
        "producer-property": Flag("Use --command-property instead.", "producer_prop"),
        "command-property": Flag("An option of the producer, as name=value.", "producer_prop"),
        "producer.config": Flag("Use --command-config instead.", "config file"),
        "command-config": COMMAND_CONFIG,
    },
    {
        "broker-list": Old("bootstrap-server"),
        **dict.fromkeys(("new-producer", "old-producer"), WITHOUT_EFFECT),
        # Of the producer that Apache Kafka 2.0 removed; its encoders kept text as it is.
        **dict.fromkeys(
            (
                "key-serializer",
                "value-serializer",
                "queue-size",
                "queue-enqueuetimeout-ms",
                "metadata-fetch-timeout-ms",
            ),
            VALUE_WITHOUT_EFFECT,
        ),
    },
)
_READERS = (
    "org.apache.kafka.tools.LineMessageReader",
    "kafka.tools.ConsoleProducer$LineMessageReader",
)
_DEPRECATED = {
    "producer-property": "command-property",
    "producer.config": "command-config",
    "property": "reader-property",
}
_DEPRECATED_SIZE = "max-partition-memory-bytes"


def run(options: Options) -> int:
    """Send each line of standard input as a record."""
    options.require("topic")
    check_bootstrap(options["bootstrap-server"] or "")
    _check_generations(options)
    try:
        check_addresses(options["bootstrap-server"])
        return _send_lines(options)
    except NoSuchFile:
        raise
    except (ConfigError, RejectedOption, LineError) as error:
        err(str(error))
    except OttlaError as error:
        log_handshake(error)
        topic = options["topic"]
        reason = java_exception(of_records(error, topic))
        err(f"Error when sending message to topic {topic}: {reason}")
    return 1


def _check_generations(options: Options) -> None:
    for old, new in _DEPRECATED.items():
        if old in options and new in options:
            raise UsageError(f"Options --{new} and --{old} cannot be specified together.")
    for old, new in _DEPRECATED.items():
        if old in options:
            out(
                f"Warning: --{old} is deprecated and will be removed in a future version. "
                f"Use --{new} instead."
            )
    if _DEPRECATED_SIZE in options:
        out(
            f"Warning: --{_DEPRECATED_SIZE} is deprecated and will be removed in Apache Kafka 5.0. "
            "Use --batch-size instead."
        )


def _send_lines(options: Options) -> int:
    if options["line-reader"] not in (None, *_READERS):
        raise ConfigError(f"--line-reader {options['line-reader']} is a Java class: not supported")
    reader = LineReader(_reader_properties(options))
    bootstrap = options["bootstrap-server"]
    warn = unreachable_warning(bootstrap)
    with open_tolerantly(
        lambda settings: RecordProducer(bootstrap, settings, warn), _settings(options)
    ) as producer:
        try:
            for text in _lines():
                line = reader.read(text)
                producer.send(options["topic"], line.value, key=line.key, headers=line.headers)
                if "sync" in options:
                    producer.flush()
        except LineError:
            producer.flush()
            raise
    if options.is_json:
        as_json({"topic": options["topic"], "records": producer.delivered})
    return 0


def _lines() -> Iterator[str]:
    has_prompt = sys.stdin.isatty() and sys.stdout.isatty()
    lines = java_lines(cast(Stream, sys.stdin.buffer))
    while True:
        if has_prompt:
            sys.stdout.write(">")
            sys.stdout.flush()
        line = next(lines, None)
        if line is None:
            return
        yield line


def _reader_properties(options: Options) -> dict[str, str]:
    name = options["reader-config"]
    from_flags = pairs([*options.all("property"), *options.all("reader-property")])
    return {**read_client_file(name, keeps_spaces=True), **from_flags}


def _settings(options: Options) -> dict[str, str]:
    name = options["command-config"] or options["producer.config"]
    properties = read_client_file(name)
    properties |= pairs([*options.all("producer-property"), *options.all("command-property")])
    codec = "none"
    if "compression-codec" in options:
        codec = options["compression-codec"] or "gzip"
    properties["compression.type"] = codec
    properties.setdefault("client.id", "console-producer")
    for flag, key in (
        ("request-required-acks", "acks"),
        ("message-send-max-retries", "retries"),
        ("retry-backoff-ms", "retry.backoff.ms"),
        ("metadata-expiry-ms", "metadata.max.age.ms"),
        ("max-memory-bytes", "buffer.memory"),
        ("timeout", "linger.ms"),
        ("batch-size", "batch.size"),
        ("max-partition-memory-bytes", "batch.size"),
        ("socket-buffer-size", "send.buffer.bytes"),
        ("request-timeout-ms", "request.timeout.ms"),
    ):
        value = options[flag]
        if value is not None and (flag in options or key not in properties):
            properties[key] = str(value)
    check_options(Role.PRODUCER, properties)
    return librdkafka_settings(properties)
