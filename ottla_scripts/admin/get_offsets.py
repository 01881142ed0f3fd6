"""`kafka-get-offsets` (org.apache.kafka.tools.GetOffsetShell)."""

import re
from collections.abc import Callable

from ottla.base.errors import ApiError, OttlaError
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla_scripts.admin.topics import topic_pattern
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    VALUE_WITHOUT_EFFECT,
    Flag,
    Old,
    Options,
    Spec,
    long,
)
from ottla_scripts.java_errors import java_exception
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import check_bootstrap, cluster

SPEC = Spec(
    "An interactive shell for getting topic-partition offsets.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "topic": Flag("The topics, as a regular expression; default: all.", "topic"),
        "partitions": Flag("The partitions, as in 0,2; default: all.", "partition ids"),
        "topic-partitions": Flag("Topics with partitions, as in a:1,b:0-3,c,d:5-.", "patterns"),
        "time": Flag(
            "latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), "
            "latest-tiered (-5), or milliseconds.",
            "time",
            default="latest",
        ),
        "exclude-internal-topics": Flag("Leave out internal topics."),
    },
    {
        "broker-list": Old("bootstrap-server"),
        "offsets": VALUE_WITHOUT_EFFECT,
        "max-wait-ms": VALUE_WITHOUT_EFFECT,
    },
)
_NAMES = {"latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4,
          "latest-tiered": -5, "earliest-pending-upload": -6}  # fmt: skip
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
Wanted = Callable[[str, int], bool]


def run(options: Options) -> int:
    """Print `topic:partition:offset` for each partition."""
    options.require("bootstrap-server")
    check_bootstrap(options["bootstrap-server"])
    try:
        _print(options)
    except (OttlaError, ValueError) as error:
        err(f"Error occurred: {java_exception(error)}")
        return 1
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print the error as the tool's main method prints one."""
    err(f"Error occurred: {error}")
    return 1


def _print(options: Options) -> None:
    if "topic-partitions" in options and ("topic" in options or "partitions" in options):
        raise ValueError("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = _timestamp(options["time"])
    is_selected = _filter(options)
    with cluster(options, client_id="GetOffsetShell") as brokers:
        keys = [
            (topic.name, partition.partition)
            for topic in topics.list_topics(brokers)
            if not (topic.is_internal and "exclude-internal-topics" in options)
            for partition in topic.partitions
            if is_selected(topic.name, partition.partition)
        ]
        if not keys:
            raise ValueError("Could not match any topic-partitions with the specified filters")
        results = _offsets(brokers, sorted(keys, key=lambda key: f"{key[0]}-{key[1]}"), timestamp)
    if options.is_json:
        as_json([{"topic": t, "partition": p, "offset": o} for (t, p), o in results.items()])
        return
    for (topic, partition), offset in results.items():
        out(f"{topic}:{partition}:{offset}")


def _offsets(
    brokers: Brokers, keys: list[tuple[str, int]], timestamp: int
) -> dict[tuple[str, int], int]:
    results = {}
    for key in keys:
        try:
            offset = offsets.list_offsets(brokers, {key: timestamp})[key].offset
        except ApiError as error:
            name = f"{key[0]}-{key[1]}"
            reason = java_exception(error)
            err(f"Skip getting offsets for topic-partition {name} due to error: {reason}")
            continue
        if offset >= 0:
            results[key] = offset
    return results


def _timestamp(text: str) -> int:
    if text in _NAMES:
        return _NAMES[text]
    try:
        return long(text)
    except ValueError:
        raise ValueError(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or "
            "max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or "
            "earliest-pending-upload, or a specified long format timestamp"
        ) from None


def _filter(options: Options) -> Wanted:
    if "topic-partitions" in options:
        rules = [_rule(text) for text in options["topic-partitions"].split(",")]
        return lambda topic, partition: any(rule(topic, partition) for rule in rules)
    pattern = topic_pattern(options["topic"] or ".*")
    numbers = _numbers(options["partitions"])
    return lambda topic, partition: bool(
        pattern and pattern.fullmatch(topic) and (not numbers or partition in numbers)
    )


def _numbers(text: str | None) -> set[int]:
    try:
        return {int(part) for part in text.split(",")} if text else set()
    except ValueError:
        raise ValueError(
            "--partitions expects a comma separated list of numeric partition ids, "
            f"but received: {text}"
        ) from None


def _rule(text: str) -> Wanted:
    rule = _RULE.fullmatch(text)
    if rule is None:
        raise ValueError(
            f"org.apache.kafka.tools.TerseException: Invalid rule specification: {text}"
        )
    pattern = topic_pattern(rule.group(1) or ".*")
    if rule.group(2):
        low, high = int(rule.group(2)), int(rule.group(2)) + 1
    else:
        low, high = int(rule.group(3) or 0), int(rule.group(4) or 2**31)
    return lambda topic, partition: bool(
        pattern and pattern.fullmatch(topic) and low <= partition < high
    )
