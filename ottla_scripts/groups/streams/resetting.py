"""`kafka-streams-groups --reset-offsets`."""

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import offsets
from ottla.client.admin.apache.streams_groups import describe_streams_group
from ottla.client.brokers import Brokers
from ottla.operations.offsets.groups import IDLE_STATES
from ottla_scripts.flags import Options
from ottla_scripts.groups import kinds, resetting
from ottla_scripts.groups.resetting import TargetOffsets, TopicPartition
from ottla_scripts.groups.running import print_error, runtime_exception
from ottla_scripts.groups.streams.description import KIND, committed_offsets
from ottla_scripts.groups.streams.internal_topics import delete_topics, internal_topics
from ottla_scripts.java_errors import java_exception
from ottla_scripts.java_order import name_order

_WIDTHS = (30, 30, 10, 15)


def reset(brokers: Brokers, options: Options) -> None:
    """Plan new offsets for each group, print them, and commit them with --execute."""
    plans: dict[str, TargetOffsets] = {}
    for name in name_order(dict.fromkeys(kinds.selected(brokers, options, KIND))):
        state = _state(brokers, name)
        if state is not None and state not in IDLE_STATES:
            print_error(
                f"Assignments can only be reset if the group '{name}' is inactive, but the "
                f"current state is {state}."
            )
            plans[name] = {}
            continue
        keys = _keys(brokers, options, name)
        rows = resetting.prepare(brokers, options, name, keys, _current)
        plans[name] = resetting.targets(rows)
        if "execute" in options:
            resetting.commit(brokers, name, rows)
            if state is not None:
                _delete_internal_topics(brokers, options, name)
    resetting.print_plans(options, plans, _WIDTHS)


def _current(brokers: Brokers, group: str) -> dict[TopicPartition, int]:
    rows = committed_offsets(brokers, group).items()
    return {key: row.offset for key, row in rows if row.offset >= 0}


def _state(brokers: Brokers, name: str) -> str | None:
    """Return the state of a group, None if it does not exist."""
    with runtime_exception():
        try:
            return describe_streams_group(brokers, name).state
        except ApiError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return None
            raise


def _delete_internal_topics(brokers: Brokers, options: Options, group: str) -> None:
    if "delete-all-internal-topics" in options:
        names = internal_topics(brokers, group)
    else:
        names = options.all("delete-internal-topic")
    errors = list(delete_topics(brokers, names).values())
    if not errors:
        return
    if errors[0].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        reason = "because the topics do not exist."
    else:
        reason = f"due to {java_exception(errors[0])}"
    print_error(f"Deleting internal topics for group '{group}' failed {reason}")


def _keys(brokers: Brokers, options: Options, group: str) -> list[TopicPartition]:
    if "all-input-topics" in options:
        return list(committed_offsets(brokers, group, has_repartition=False))
    if "input-topic" not in options:
        resetting.require_file(options)
        return []
    keys = resetting.parse_topics(brokers, options.all("input-topic"))
    resetting.check_partitions(brokers, keys)
    with runtime_exception():
        committed = offsets.committed_offsets(brokers, group, require_stable=False)
    if not all(key in committed for key in keys):
        print_error(f"One or more topics are not part of the group '{group}'.")
        return []
    return keys
