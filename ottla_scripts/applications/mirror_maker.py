"""`kafka-mirror-maker` (kafka.tools.MirrorMaker of 3.9): `ottla topic copy --follow` for several
topics.

Topics keep their names, as there. New topics that match and new partitions are found every
metadata.max.age.ms, by default 10 s, and copied from their beginning. Instances of one group do not
divide the partitions: with `--exactly-once` the newest fences the others, without it each reports
the others.

Several clusters may be mirrored to one, also into topics of the same names. The topics with
positions (TOPIC.mirror-offsets) are never mirrored.

`--exactly-once`, `--target-topic`, `--groups` and `--until-end` are extensions. The position is in
the target (TOPIC.mirror-offsets), and shown by the group of the consumer's configuration.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.base.loading import deferred, deferred_module
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.client.config.choices import reset_age_ms
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.security.options import security_of, security_options
from ottla.operations.offsets.positions import Anchor, Position
from ottla.tools.signals import PATIENCE_S, StopSignals
from ottla_scripts.admin.topics import topic_pattern
from ottla_scripts.definitions import check_options
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    VALUE_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    Flag,
    Old,
    Options,
    Spec,
    integer,
)
from ottla_scripts.printing import as_json, err
from ottla_scripts.session import read_properties

# Errors of the command line do not load librdkafka.
if TYPE_CHECKING:
    from ottla.operations.mirror import routes
else:
    routes = deferred_module("ottla.operations.mirror.routes")
_settings = deferred("ottla.operations.mirror.copying", "MirrorSettings")
_mirror = deferred("ottla.operations.mirror.copying", "Mirror")

# Apache Kafka's notice; the copy here reads every partition itself.
_WARNING = (
    "WARNING: The default partition assignment strategy of the mirror maker will change from "
    "'range' to 'roundrobin' in an upcoming release (so that better load balancing can be "
    "achieved). If you prefer to make this switch in advance of that release add the following to "
    "the corresponding config: 'partition.assignment.strategy="
    "org.apache.kafka.clients.consumer.RoundRobinAssignor'"
)
# The source may have batches that fit only because they are compressed.
_TOO_LARGE = (
    "Set compression.type in the file of --producer.config, as the producers of the source do, or "
    "raise max.message.bytes of the topic on the target."
)
_METADATA_MAX_AGE_MS = "10000"
_REFRESH_MIN_MS = 100
_CLASSES = ("consumer.rebalance.listener", "rebalance.listener.args", "message.handler", "message.handler.args")  # fmt: skip

SPEC = Spec(
    "This tool continuously copies data between two Kafka clusters.",
    {
        "consumer.config": Flag("The source: bootstrap.servers, group.id, ….", "config file"),
        "producer.config": Flag("The target: bootstrap.servers, ….", "config file"),
        "include": Flag("A regular expression of topics to mirror.", "Java regex (String)"),
        "offset.commit.interval.ms": Flag(
            "Store the position this often.",
            "offset commit interval in millisecond",
            integer,
            default=60_000,
        ),
        "num.streams": Flag("Accepted; one loop copies all topics.", "Number of threads", integer),
        "abort.on.send.failure": Flag(
            "Only true is supported.", "Stop the entire mirror maker when a send failure occurs"
        ),
        **{
            name: Flag("Not supported: a Java class or its arguments.", "class")
            for name in _CLASSES
        },
        "exactly-once": Flag("Write records and positions in transactions (extension)."),
        "target-topic": Flag("The name on the target, for one topic (extension).", "topic"),
        "groups": Flag("Translate offsets of these groups (extension).", "groups"),
        "until-end": Flag("Stop at the end of the source (extension)."),
    },
    {
        "whitelist": Old("include"),
        "new.consumer": WITHOUT_EFFECT,
        "new.producer": WITHOUT_EFFECT,
        "num.producers": VALUE_WITHOUT_EFFECT,
        "queue.size": VALUE_WITHOUT_EFFECT,
    },
)


def run(options: Options) -> int:
    """Copy the topics until stopped."""
    options.require("consumer.config", "producer.config")
    for name in _CLASSES:
        if name in options:
            raise UsageError(f"--{name} names a Java class, which cannot run here: remove it")
    for name in ("num.streams", "offset.commit.interval.ms"):
        if options[name] is not None and options[name] < 1:
            raise UsageError(f"--{name} must be at least 1")
    aborts = (options["abort.on.send.failure"] or "true").lower()
    if aborts not in ("true", "false"):
        raise UsageError("--abort.on.send.failure must be true or false")
    if aborts == "false":
        raise UsageError("--abort.on.send.failure=false would lose records: remove it")
    if "include" not in options:
        err("include must be specified")
        return 1
    consumer = read_properties(options["consumer.config"])
    producer = read_properties(options["producer.config"])
    for name, properties in (("consumer.config", consumer), ("producer.config", producer)):
        if not properties.get("bootstrap.servers"):
            raise UsageError(f"{options[name]} has no bootstrap.servers: add it")
    if "partition.assignment.strategy" not in consumer:
        err(_WARNING)
    try:
        check_options(Role.PRODUCER, producer)
        check_options(Role.CONSUMER, consumer)
        return _mirror_topics(options, consumer, producer)
    except OttlaError as error:
        is_too_large = isinstance(error, ApiError) and error.code is ErrorCode.MESSAGE_TOO_LARGE
        err(f"{error} {_TOO_LARGE}" if is_too_large else str(error))
        return 1


def _mirror_topics(options: Options, consumer: dict[str, str], producer: dict[str, str]) -> int:
    addresses = consumer.pop("bootstrap.servers"), producer.pop("bootstrap.servers")
    with (
        Brokers(addresses[0], security=security_of(consumer)) as source,
        Brokers(addresses[1], security=security_of(producer)) as target,
        StopSignals(patience_s=PATIENCE_S) as stop,
    ):
        # The points are read from the target, too.
        target.settings = librdkafka_settings(security_options(producer))
        found = _routes(options, source, is_same=addresses[0] == addresses[1])
        follows = "until-end" not in options
        if not found and not follows:
            err(f"No topic matches {options['include']}.")
            return 1
        if not found:
            err(f"No topic matches {options['include']} yet.")
        group = consumer.pop("group.id", None)
        start = _start(consumer.pop("auto.offset.reset", "latest"))
        settings = _settings(
            exactly_once="exactly-once" in options,
            follow=follows,
            interval_s=options["offset.commit.interval.ms"] / 1000,
            group=group,
            groups=tuple(name for name in (options["groups"] or "").split(",") if name),
            start=start,
            refresh_s=_refresh_s(consumer),
            identity=group or options["include"],
            consumer=librdkafka_settings(consumer),
            producer=producer,
        )
        # A topic that is named for the target is the only one.
        find = (
            None if "target-topic" in options else lambda: _routes(options, source, is_same=False)
        )
        mirror = _mirror(source, target, found, settings, err, find)
        mirror.run(stop, lambda _: None)
    if options.is_json:
        as_json({"records": mirror.copied, "groups": mirror.moved_groups})
    return stop.exit_code


def _start(reset: str) -> Position:
    """Return the start of partitions without a position."""
    age_ms = reset_age_ms(reset)
    if age_ms is not None:
        return Position(Anchor.TIME, time.time_ns() // 1_000_000 - age_ms)
    if reset == "none":
        raise UsageError(
            "auto.offset.reset=none gives new topics no beginning: use earliest or latest"
        )
    return Position(Anchor.END if reset == "latest" else Anchor.BEGINNING)


def _refresh_s(consumer: Mapping[str, str]) -> float:
    """Return the interval of metadata.max.age.ms, in which Apache Kafka's consumer finds topics."""
    age_ms = int(consumer.get("metadata.max.age.ms", _METADATA_MAX_AGE_MS))
    return max(age_ms, _REFRESH_MIN_MS) / 1000


def _routes(options: Options, source: Brokers, *, is_same: bool) -> "list[routes.Route]":
    try:
        pattern = topic_pattern(options["include"])
    except ValueError as error:
        raise UsageError(str(error)) from None
    names = [
        topic.name
        for topic in topics.list_topics(source)
        if pattern is not None
        and pattern.fullmatch(topic.name)
        and not topic.is_internal
        # The positions of another mirror are of no use elsewhere.
        and not topic.name.endswith(routes.POINTS_SUFFIX)
    ]
    other = options["target-topic"]
    if other is not None and len(names) != 1:
        raise UsageError(f"--target-topic needs one topic, and --include matches {len(names)}")
    if is_same and other in (None, *names):
        raise UsageError("source and target are the same cluster: name another --target-topic")
    return [routes.Route(name, other or name) for name in names]
