"""Topics that are created, extended, trimmed and deleted: each operation returns its changes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.client.admin import topics as admin
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change, if_possible

# Only `trim` needs them, and `kafka-topics` starts faster.
if TYPE_CHECKING:
    from ottla.client.admin import offsets, records
else:
    offsets = deferred_module("ottla.client.admin.offsets")
    records = deferred_module("ottla.client.admin.records")

Key = tuple[str, int]


def create(
    brokers: Brokers,
    name: str,
    *,
    partitions: int | Sequence[Sequence[int]] = admin.BROKER_DEFAULT,
    replication_factor: int = admin.BROKER_DEFAULT,
    config: Mapping[str, str] | None = None,
    validate_only: bool = False,
    cluster: str = "",
) -> Change:
    """Create a topic; the change has its numbers, which are -1 if the brokers do not report them.

    `partitions` is their number, or the brokers of each, which replace both numbers. With
    `validate_only` the cluster only checks the topic. Raises ApiError TOPIC_ALREADY_EXISTS,
    INVALID_CONFIG and others.
    """
    assignments: Sequence[Sequence[int]] = ()
    if not isinstance(partitions, int):
        assignments, partitions = partitions, admin.BROKER_DEFAULT
        replication_factor = admin.BROKER_DEFAULT
    created = admin.create_topic(
        brokers,
        name,
        partitions=partitions,
        replication_factor=replication_factor,
        assignments=assignments,
        config=config or {},
        validate_only=validate_only,
    )
    numbers = {
        "partitions": str(created.partitions),
        "replication_factor": str(created.replication_factor),
    }
    action = "topic.validate" if validate_only else "topic.create"
    return Change(cluster, action, name, after={**numbers, **(config or {})})


def extend(
    brokers: Brokers,
    topic: admin.Topic,
    total: int,
    *,
    assignments: Sequence[Sequence[int]] | None = None,
    validate_only: bool = False,
    cluster: str = "",
) -> Change:
    """Increase a topic to `total` partitions; ApiError INVALID_PARTITIONS if it is no increase.

    `assignments` has the brokers of each new partition. With `validate_only` the cluster only
    checks the number.
    """
    admin.create_partitions(
        brokers, topic.name, total, assignments=assignments, validate_only=validate_only
    )
    return Change(
        cluster,
        "topic.validate-partitions" if validate_only else "topic.add-partitions",
        topic.name,
        before={"partitions": str(len(topic.partitions))},
        after={"partitions": str(total)},
        notes=("Records with keys may go to other partitions from now on.",),
    )


def delete(brokers: Brokers, topic: admin.Topic | str, *, cluster: str = "") -> Change:
    """Delete a topic with all its records; if only its name is given, its numbers are unknown."""
    if isinstance(topic, str):
        admin.delete_topic(brokers, topic)
        return Change(cluster, "topic.delete", topic)
    admin.delete_topic(brokers, topic.name)
    before = {
        "partitions": str(len(topic.partitions)),
        "replication_factor": str(topic.replication_factor),
    }
    return Change(cluster, "topic.delete", topic.name, before=before)


def trim(
    brokers: Brokers,
    targets: Mapping[Key, int],
    starts: Mapping[Key, int] | None = None,
    *,
    cluster: str = "",
) -> list[Change]:
    """Delete the records before an offset of each partition; return a change for each topic.

    `starts` are the present log start offsets, if the caller has read them. Otherwise the new ones
    are not read either: the change has the smallest start among the replicas, which followers may
    not have reached. An offset of -1 is the high watermark. Raises ApiError POLICY_VIOLATION if a
    topic is only compacted.
    """
    after = records.delete_records(brokers, targets)
    if starts is not None:
        earliest = dict.fromkeys(targets, offsets.EARLIEST)
        rows = if_possible(lambda: offsets.list_offsets(brokers, earliest)) or {}
        after |= {key: row.offset for key, row in rows.items()}
    keys_of: dict[str, list[Key]] = {}
    for key in sorted(targets):
        keys_of.setdefault(key[0], []).append(key)
    return [
        Change(
            cluster,
            "topic.delete-records",
            name,
            before={_start(key): str(starts[key]) for key in keys if starts is not None},
            after={_start(key): str(after[key]) for key in keys},
        )
        for name, keys in keys_of.items()
    ]


def new_starts(changes: list[Change]) -> dict[Key, int]:
    """Return the log start offsets after `trim`. Pure."""
    return {
        (change.resource, int(name.rpartition(" ")[2])): int(offset)
        for change in changes
        for name, offset in change.after.items()
    }


def _start(key: Key) -> str:
    return f"start of {key[1]}"
