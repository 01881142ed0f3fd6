"""`kafka-consumer-groups --delete` and `--delete-offsets`."""

from collections import defaultdict

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import groups
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.tools.scripts.flags import Options
from ottla.tools.scripts.groups.resetting import TopicPartition, parse_topics
from ottla.tools.scripts.printing import as_json, left, out
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

# The exceptions of the Java client for error codes, as the tool prints them.
_EXCEPTIONS = {
    ErrorCode.GROUP_ID_NOT_FOUND: ("GroupIdNotFoundException", "The group id does not exist."),
    ErrorCode.NON_EMPTY_GROUP: ("GroupNotEmptyException", "The group is not empty."),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
}


def _exception(error: ApiError) -> str:
    name, text = _EXCEPTIONS.get(error.code, (error.code.name, str(error)))
    return f"org.apache.kafka.common.errors.{name}: {text}"


def delete_groups(brokers: Brokers, options: Options) -> None:
    """Delete groups, and report those that could not be deleted."""
    if "all-groups" in options:
        names = [group.group_id for group in groups.list_groups(brokers)]
    else:
        names = list(dict.fromkeys(options.all("group")))
    failed: dict[str, str] = {}
    for name in names:
        try:
            groups.delete_group(brokers, name)
        except ApiError as error:
            failed[name] = _exception(error)
    done = [name for name in names if name not in failed]
    if options.is_json:
        as_json({"deleted": done, "failed": failed})
        return
    listed = ", ".join(done)
    if not failed:
        out(f"Deletion of requested consumer groups ('{listed}') was successful.")
        return
    out("\nError: Deletion of some consumer groups failed:")
    for name, text in failed.items():
        out(f"* Group '{name}' could not be deleted due to: {text}")
    if done:
        out("\nThese consumer groups were deleted successfully: '" + "'".join(done) + "', '")


def delete_offsets(brokers: Brokers, options: Options) -> None:
    """Delete committed offsets of topics, and show the result for each partition."""
    group = options["group"]
    keys = parse_topics(brokers, options.all("topic"))
    try:
        results = _delete(brokers, group, keys)
        first = next((error for error in results.values() if error is not None), None)
    except ApiError as error:
        results, first = dict.fromkeys(keys, error), error
    if options.is_json:
        as_json([{"topic": t, "partition": p, "error": e} for (t, p), e in results.items()])
        return
    if first is None:
        out(f"Request succeeded for deleting offsets from group {group}.")
    elif first.code in _EXCEPTIONS and first.code is ErrorCode.GROUP_ID_NOT_FOUND:
        out(f"\nError: {_EXCEPTIONS[first.code][1]}")
    else:
        out("\nError: Encountered some partition-level error, see the follow-up details.")
    widths = (15, 10, 15)
    out()
    out(left(("TOPIC", "PARTITION", "STATUS"), widths))
    for (topic, partition), failure in results.items():
        status = "Successful" if failure is None else f"Error: {_exception(failure)}"
        out(left((topic, partition, status), widths))


def _delete(
    brokers: Brokers, group: str, keys: list[TopicPartition]
) -> dict[TopicPartition, ApiError | None]:
    rows: dict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
    for topic, partition in keys:
        rows[topic].append(OffsetDeleteRequestPartition(partition_index=partition))
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=partitions)
            for name, partitions in rows.items()
        ],
    )

    def attempt() -> dict[TopicPartition, ApiError | None]:
        response = brokers.ask_coordinator(group, request, OffsetDeleteResponse)
        check(response.error_code)
        results: dict[TopicPartition, ApiError | None] = {}
        for topic in response.topics:
            for row in topic.partitions:
                try:
                    check(row.error_code)
                    results[topic.name, row.partition_index] = None
                except ApiError as error:
                    results[topic.name, row.partition_index] = error
        return results

    return brokers.retry(attempt)
