"""`kafka-topics` (org.apache.kafka.tools.TopicCommand)."""

import base64
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.base.loading import deferred_module
from ottla.base.uuids import uuid_text
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.operations import topics as operations
from ottla_scripts.admin import topic_description
from ottla_scripts.admin.java_split import java_split
from ottla_scripts.exits import NoSuchFile, RejectedOption, UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    WITHOUT_EFFECT,
    ZOOKEEPER,
    ZOOKEEPER_FILE,
    Flag,
    Options,
    Spec,
    integer,
)
from ottla_scripts.java_errors import java_message
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster

# Only --zookeeper --alter changes configurations.
if TYPE_CHECKING:
    from ottla.client.admin import configs as admin_configs
    from ottla.operations import configs as changes
else:
    admin_configs = deferred_module("ottla.client.admin.configs")
    changes = deferred_module("ottla.operations.configs")

SPEC = Spec(
    "Create, delete, describe, or change a topic.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "list": Flag("List the topics."),
        "create": Flag("Create a topic."),
        "delete": Flag("Delete topics."),
        "alter": Flag("Add partitions to topics."),
        "describe": Flag("Show topics and their partitions."),
        "topic": Flag("A topic; except with --create, a regular expression.", "topic"),
        "topic-id": Flag("The id of the topic to describe.", "topic-id"),
        "config": Flag("An option of the new topic; may be repeated.", "name=value"),
        "delete-config": Flag("Only with --zookeeper; else use kafka-configs.", "name"),
        "partitions": Flag("The number of partitions.", "# of partitions", integer),
        "replication-factor": Flag("The number of replicas.", "replication factor", integer),
        "replica-assignment": Flag("Brokers of each partition, as in 1:2,2:3.", "assignment"),
        "under-replicated-partitions": Flag("Show only under-replicated partitions."),
        "unavailable-partitions": Flag("Show only partitions without a leader."),
        "under-min-isr-partitions": Flag("Show only partitions below min.insync.replicas."),
        "at-min-isr-partitions": Flag("Show only partitions at min.insync.replicas."),
        "topics-with-overrides": Flag("Show only topics with options of their own."),
        "if-exists": Flag("Do nothing if the topic does not exist."),
        "if-not-exists": Flag("Do nothing if the topic exists."),
        "exclude-internal": Flag("Leave out internal topics."),
        "partition-size-limit-per-response": Flag(
            "The largest number of partitions of one response.", "partitions", integer
        ),
    },
    {
        "zookeeper": ZOOKEEPER,
        "disable-rack-aware": WITHOUT_EFFECT,
        "force": WITHOUT_EFFECT,
        "zk-tls-config-file": ZOOKEEPER_FILE,
    },
)
_ID_BYTES = 16
_ACTIONS = ("create", "list", "alter", "describe", "delete")
_REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
_ALTERING_ZOOKEEPER = (
    "WARNING: Altering topic configuration from this script has been deprecated and may be removed "
    "in future releases.\n         Going forward, please use kafka-configs.sh for this functionality"
)
_ALTERING = " (To alter topic configurations, the kafka-configs tool can be used.)"


def run(options: Options) -> int:
    """Run the action of the command line."""
    _check(options)
    action = next(name for name in _ACTIONS if name in options)
    # Their errors differ from the action's.
    _ = options["bootstrap-server"], options["command-config"]
    try:
        with cluster(options) as brokers:
            {
                "create": _create,
                "list": _list,
                "alter": _alter,
                "describe": _describe,
                "delete": _delete,
            }[action](brokers, options)
    except NoSuchFile:
        # Apache Kafka's tool does not expect it.
        raise
    except RejectedOption as error:
        err(str(error))
        return 1
    except (OttlaError, ValueError) as error:
        out(f"Error while executing topic command : {java_message(error)}")
        return 1
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print the error as the tool's main method prints an exception."""
    err(str(error))
    return 1


def _check(options: Options) -> None:
    if sum(name in options for name in _ACTIONS) != 1:
        raise UsageError(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    if "delete-config" in options and not options.used_zookeeper:
        err(
            "delete-config option is no longer supported and deprecated since version 4.0. "
            "The config will be fully removed in future releases."
        )
    if "bootstrap-server" not in options:
        raise UsageError("--bootstrap-server must be specified", is_parse_error=True)
    _check_topic(options)
    allowed = {
        "config": ("alter", "create"),
        "partitions": ("alter", "create"),
        "replication-factor": ("create",),
        "replica-assignment": ("alter", "create"),
    }
    for name, actions in allowed.items():
        options.forbid(name, *(other for other in _ACTIONS if other not in actions))
    if "create" in options:
        options.forbid("replica-assignment", "partitions", "replication-factor")
    for name in _REPORTS:
        options.forbid(name, *(other for other in _ACTIONS if other != "describe"))
        options.forbid(name, "topics-with-overrides")
    options.forbid("topics-with-overrides", "create", "list", "alter", "delete")
    options.forbid("if-exists", "create", "list")
    options.forbid("if-not-exists", "list", "alter", "describe", "delete")
    options.forbid("exclude-internal", "create", "alter", "delete")


def _check_topic(options: Options) -> None:
    selects = "topic" in options or "topic-id" in options
    if "describe" in options and "if-exists" in options and not selects:
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if "list" not in options and "describe" not in options:
        options.require("topic")
    if "alter" in options and not _alters_configs(options):
        if "config" in options:
            raise UsageError(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
                f'"[alter]"{_ALTERING}'
            )
        options.require("partitions")


def _alters_configs(options: Options) -> bool:
    """Return True if --zookeeper makes --alter change configurations: Apache Kafka before 3.0."""
    return options.used_zookeeper and ("config" in options or "delete-config" in options)


def _create(brokers: Brokers, options: Options) -> None:
    name = options["topic"]
    assignment = _assignment(options)
    configs = _configs(options)
    if not name:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "The given topic name '' cannot be represented in a request.",
        )
    if "." in name or "_" in name:
        out(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore "
            "('_') could collide. To avoid issues it is best to use either, but not both."
        )
    factor, partitions = options["replication-factor"], options["partitions"]
    if factor is not None and not 1 <= factor <= 32767:
        raise ValueError("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise ValueError("The partitions must be greater than 0")
    default = topics.BROKER_DEFAULT
    chosen = list(assignment.values()) or partitions or default
    try:
        operations.create(
            brokers, name, partitions=chosen, replication_factor=factor or default, config=configs
        )
    except ApiError as error:
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and "if-not-exists" in options:
            return
        raise
    if options.is_json:
        as_json({"topic": name, "created": True})
    else:
        out(f"Created topic {name}.")


def _list(brokers: Brokers, options: Options) -> None:
    names = [topic.name for topic in _matching(brokers, options)]
    if options.is_json:
        as_json(names)
    else:
        out("\n".join(names))


def _alter(brokers: Brokers, options: Options) -> None:
    existing = _existing(brokers, options)
    assignment = _assignment(options)
    if _alters_configs(options):
        _alter_configs(brokers, options, existing)
        if "partitions" not in options:
            return
    for topic in existing:
        added = list(assignment.values())[len(topic.partitions) :] if assignment else None
        operations.extend(brokers, topic, options["partitions"], assignments=added)
        if options.is_json:
            as_json({"topic": topic.name, "partitions": options["partitions"]})


def _alter_configs(brokers: Brokers, options: Options, existing: list[topics.Topic]) -> None:
    assign, delete = _configs(options), options.all("delete-config")
    out(_ALTERING_ZOOKEEPER)
    for topic in existing:
        resource = admin_configs.Resource(admin_configs.ResourceType.TOPIC, topic.name)
        changes.alter(brokers, resource, assign, delete, known=({}, {}))
        words = ["--add-config", ",".join(map(_config_word, assign.items()))] if assign else []
        words += ["--delete-config", ",".join(delete)] if delete else []
        err(
            f"The same today: kafka-configs --bootstrap-server {options['bootstrap-server']} "
            f"--alter --topic {topic.name} {shlex.join(words)}"
        )
        out(f"Updated config for topic {topic.name}.")


def _config_word(pair: tuple[str, str]) -> str:
    name, value = pair
    return f"{name}=[{value}]" if "," in value else f"{name}={value}"


def _describe(brokers: Brokers, options: Options) -> None:
    # Its value is read, and has no effect.
    _ = options["partition-size-limit-per-response"]
    topic_id = options["topic-id"]
    if topic_id is None or topic_id == "A" * 22:
        selected = _existing(brokers, options)
    else:
        _check_topic_id(topic_id)
        selected = [
            topic
            for topic in _matching(brokers, options, has_pattern=False)
            if uuid_text(topic.topic_id) == topic_id
        ]
        if not selected and "if-exists" not in options:
            raise ValueError(f"TopicId '{topic_id}' does not exist as expected")
    topic_description.describe(brokers, selected, options)


def _delete(brokers: Brokers, options: Options) -> None:
    for topic in _existing(brokers, options):
        operations.delete(brokers, topic)
        if options.is_json:
            as_json({"topic": topic.name, "deleted": True})
        elif options.used_zookeeper:
            out(f"Topic {topic.name} is marked for deletion.")
            out("Note: This will have no impact if delete.topic.enable is not set to true.")


def _check_topic_id(text: str) -> None:
    # Uuid.fromString, which decodes Base64 for URLs without padding.
    if len(text) == 1:
        raise ValueError("Input byte[] should at least have 2 bytes for base64 bytes")
    try:
        size = len(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        size = 0
    if size != _ID_BYTES:
        raise ValueError(
            f"Input string `{text}` decoded as {size} bytes, which is not equal to the expected "
            f"{_ID_BYTES} bytes of a base64-encoded UUID"
        )


def _existing(brokers: Brokers, options: Options) -> list[topics.Topic]:
    matching = _matching(brokers, options)
    if not matching and options["topic"] and "if-exists" not in options:
        raise ValueError(f"Topic '{options['topic']}' does not exist as expected")
    return matching


def _matching(
    brokers: Brokers, options: Options, *, has_pattern: bool = True
) -> list[topics.Topic]:
    pattern = topic_pattern(options["topic"]) if has_pattern else None
    return [
        topic
        for topic in topics.list_topics(brokers)
        if (pattern is None or pattern.fullmatch(topic.name))
        and not (topic.is_internal and "exclude-internal" in options)
    ]


def topic_pattern(text: str | None) -> re.Pattern[str] | None:
    """Compile a topic filter (kafka's IncludeList): commas are alternatives. None for None."""
    if text is None:
        return None
    bare = re.sub(r"^[\"']+|[\"']+$", "", text.strip().replace(",", "|").replace(" ", ""))
    try:
        return re.compile(bare)
    except re.error as error:
        raise ValueError(f"{text} is an invalid regex.") from error


def _configs(options: Options) -> dict[str, str]:
    # `name=` has no value.
    split = [java_split(r"\s*=\s*", text) for text in options.all("config")]
    if any(len(pair) != 2 for pair in split):
        raise ValueError(
            "requirement failed: Invalid topic config: all configs to be added must be in the "
            'format "key=val".'
        )
    return {name.strip(): value.strip() for name, value in split}


def _assignment(options: Options) -> dict[int, list[int]]:
    text = options["replica-assignment"]
    if not text:
        return {}
    rows: dict[int, list[int]] = {}
    for index, part in enumerate(java_split(",", text)):
        try:
            brokers = [integer(broker) for broker in part.split(":")]
        except ValueError as error:
            raise ValueError(f'For input string: "{part}"') from error
        twice = _duplicates(brokers)
        if twice:
            raise ValueError(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, twice))
            )
        rows[index] = brokers
        if len(brokers) != len(rows[0]):
            raise ValueError(f"Partition {index} has different replication factor: {brokers}")
    return rows


def _duplicates(values: Sequence[Any]) -> list[Any]:
    return sorted({value for value in values if values.count(value) > 1})
