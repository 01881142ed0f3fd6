"""`kafka-share-groups --delete`, `--delete-offsets` and `--reset-offsets`."""

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.apache import share_groups
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.operations.offsets import groups
from ottla_scripts.exits import Exit
from ottla_scripts.flags import Options
from ottla_scripts.groups import kinds, resetting
from ottla_scripts.groups.resetting import TopicPartition
from ottla_scripts.groups.running import print_error
from ottla_scripts.groups.share.description import KIND
from ottla_scripts.java_errors import java_exception, java_message
from ottla_scripts.printing import as_json, err, left, out

# Errors of the whole group, and errors that are shown with their topics.
_OF_GROUPS = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
_OF_TOPICS = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def delete_groups(brokers: Brokers, options: Options) -> None:
    """Delete groups, and report those that could not be deleted."""
    deletion = kinds.delete(brokers, *kinds.deletable(brokers, options, KIND))
    if options.is_json:
        as_json(deletion._asdict())
    else:
        kinds.print_deletion(KIND.name, deletion)


def delete_offsets(brokers: Brokers, options: Options) -> None:
    """Delete the start offsets of topics, and show the result for each topic."""
    group, names = options["group"], sorted(set(options.all("topic")))
    results: dict[str, ApiError | Unsupported | None] = {}
    first: ApiError | Unsupported | None = None
    try:
        results.update(groups.delete_share_offsets(brokers, group, names).errors)
        first = next((error for error in results.values() if error is not None), None)
    except (ApiError, Unsupported) as error:
        results, first = dict.fromkeys(names, error), error
    if options.is_json:
        as_json(
            [
                {"topic": name, "error": error and java_message(error)}
                for name, error in results.items()
            ]
        )
        return
    code = first.code if isinstance(first, ApiError) else None
    if first is not None and code in _OF_GROUPS:
        print_error(java_message(first))
    elif first is not None and code not in _OF_TOPICS:
        print_error(f"Encounter some unknown error: {java_exception(first)}")
    widths = (max([15, *map(len, names)]), 0)
    out()
    out(left(("TOPIC", "STATUS"), widths))
    for name in names:
        failure = results.get(name)
        status = "Successful" if failure is None else f"Error: {java_message(failure)}"
        out(left((name, status), widths))


def reset(brokers: Brokers, options: Options) -> None:
    """Plan new start offsets of a group, print them, and change them with --execute."""
    group = options["group"]
    _check_inactive(brokers, group)
    keys = _keys(brokers, options, group)
    resetting.check_partitions(brokers, keys)
    # None of the options needs the present offsets.
    rows = resetting.prepare(brokers, options, group, keys, None)
    plan = resetting.targets(rows)
    if "execute" in options:
        with resetting.altering(plan):
            groups.alter_share_offsets(brokers, group, plan)
    resetting.print_plans(options, {group: plan})


def _check_inactive(brokers: Brokers, group: str) -> None:
    try:
        state = share_groups.describe_share_group(brokers, group).state
    except (ApiError, Unsupported) as error:
        if isinstance(error, ApiError) and error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return
        err(java_message(error))
        raise Exit(1) from error
    if state not in groups.IDLE_STATES:
        err(f"Share group '{group}' is not empty.")
        raise Exit(1)


def _keys(brokers: Brokers, options: Options, group: str) -> list[TopicPartition]:
    if "topic" in options:
        return resetting.parse_topics(brokers, options.all("topic"))
    return list(share_groups.subscribed_share_group_offsets(brokers, group))
