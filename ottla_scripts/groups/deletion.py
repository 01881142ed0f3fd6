"""`kafka-consumer-groups --delete` and `--delete-offsets`."""

from collections.abc import Mapping

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.operations.changes import change_each
from ottla.operations.offsets import groups
from ottla_scripts.flags import Options
from ottla_scripts.groups.kinds import Deletion, print_deletion
from ottla_scripts.groups.resetting import TopicPartition, parse_topics
from ottla_scripts.groups.running import all_groups, print_error
from ottla_scripts.java_errors import java_exception, java_message
from ottla_scripts.java_order import name_order
from ottla_scripts.printing import as_json, left, out

Results = dict[TopicPartition, ApiError | None]
# Errors of the whole group, and of partitions.
_OF_GROUPS = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
_OF_PARTITIONS = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def delete_groups(brokers: Brokers, options: Options) -> None:
    """Delete groups, and report those that could not be deleted."""
    if "all-groups" in options:
        names = all_groups(brokers)
    else:
        names = list(dict.fromkeys(options.all("group")))
    errors = change_each(names, lambda name: groups.delete_group(brokers, name)).errors
    done = [name for name in name_order(names) if name not in errors]
    failed = {name: java_exception(errors[name]) for name in name_order(errors)}
    if options.is_json:
        as_json({"deleted": done, "failed": failed})
    else:
        print_deletion("consumer", Deletion(done, failed))


def delete_offsets(brokers: Brokers, options: Options) -> None:
    """Delete committed offsets of topics, and show the result for each partition."""
    group = options["group"]
    delete_and_print(brokers, options, group, *choose(brokers, options.all("topic")))


def choose(brokers: Brokers, arguments: list[str]) -> tuple[list[TopicPartition], Results]:
    """Return the partitions that are named, and an error for each topic that does not exist."""
    keys: list[TopicPartition] = []
    missing: Results = {}
    for argument in sorted(arguments, key=lambda text: ":" not in text):
        try:
            keys += parse_topics(brokers, [argument])
        except ApiError as error:
            missing[argument, -1] = error
    return list(dict.fromkeys(keys)), missing


def delete_and_print(
    brokers: Brokers,
    options: Options,
    group: str,
    keys: list[TopicPartition],
    missing: Results,
) -> None:
    """Delete the offsets of partitions; `missing` are errors to show with the results."""
    try:
        results: Mapping[TopicPartition, ApiError | None] = groups.delete_offsets(
            brokers, group, keys
        ).errors
        first = next((error for error in results.values() if error is not None), None)
    except ApiError as error:
        results, first = dict.fromkeys(keys, error), error
    rows = sorted({**missing, **results}.items(), key=lambda row: f"{row[0][0]}{row[0][1]}")
    if options.is_json:
        as_json([{"topic": t, "partition": p, "error": e} for (t, p), e in rows])
        return
    if first is None:
        out(f"Request succeeded for deleting offsets from group {group}.")
    elif first.code in _OF_GROUPS:
        print_error(java_message(ApiError(first.code)))
    elif first.code in _OF_PARTITIONS:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {first.code.name}")
    widths = (max([15, *(len(topic) for (topic, _), _ in rows)]), 10, 15)
    out()
    out(left(("TOPIC", "PARTITION", "STATUS"), widths))
    for (topic, partition), failure in rows:
        status = "Successful" if failure is None else f"Error: {java_exception(failure)}"
        out(left((topic, "-" if partition < 0 else partition, status), widths))
