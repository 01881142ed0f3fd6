"""Topics that are created, extended, trimmed and deleted: each operation returns its changes."""

from collections.abc import Mapping

from ottla.client.admin import offsets, records
from ottla.client.admin import topics as admin
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change, if_possible

Key = tuple[str, int]


def create(
    brokers: Brokers,
    name: str,
    *,
    partitions: int = admin.BROKER_DEFAULT,
    replication_factor: int = admin.BROKER_DEFAULT,
    config: Mapping[str, str] | None = None,
    validate_only: bool = False,
    cluster: str = "",
) -> Change:
    """Create a topic; the change has its numbers, which are -1 if the brokers do not report them.

    With `validate_only` the cluster only checks the topic. Raises ApiError TOPIC_ALREADY_EXISTS,
    INVALID_CONFIG and others.
    """
    created = admin.create_topic(
        brokers,
        name,
        partitions=partitions,
        replication_factor=replication_factor,
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
    validate_only: bool = False,
    cluster: str = "",
) -> Change:
    """Increase a topic to `total` partitions; ApiError INVALID_PARTITIONS if it is no increase.

    With `validate_only` the cluster only checks the number.
    """
    admin.create_partitions(brokers, topic.name, total, validate_only=validate_only)
    return Change(
        cluster,
        "topic.validate-partitions" if validate_only else "topic.add-partitions",
        topic.name,
        before={"partitions": str(len(topic.partitions))},
        after={"partitions": str(total)},
        notes=("Records with keys may go to other partitions from now on.",),
    )


def delete(brokers: Brokers, topic: admin.Topic, *, cluster: str = "") -> Change:
    """Delete a topic with all its records."""
    admin.delete_topic(brokers, topic.name)
    before = {
        "partitions": str(len(topic.partitions)),
        "replication_factor": str(topic.replication_factor),
    }
    return Change(cluster, "topic.delete", topic.name, before=before)


def trim(
    brokers: Brokers, targets: Mapping[Key, int], starts: Mapping[Key, int], *, cluster: str = ""
) -> list[Change]:
    """Delete the records before an offset of each partition; return a change for each topic.

    `starts` are the present log start offsets. An offset of -1 is the high watermark. Raises
    ApiError POLICY_VIOLATION if a topic is only compacted.
    """
    # The response has the smallest start among the replicas, which followers may not have reached.
    low_watermarks = records.delete_records(brokers, targets)
    earliest = dict.fromkeys(targets, offsets.EARLIEST)
    rows = if_possible(lambda: offsets.list_offsets(brokers, earliest)) or {}
    after = low_watermarks | {key: row.offset for key, row in rows.items()}
    keys_of: dict[str, list[Key]] = {}
    for key in sorted(targets):
        keys_of.setdefault(key[0], []).append(key)
    return [
        Change(
            cluster,
            "topic.delete-records",
            name,
            before={_start(key): str(starts[key]) for key in keys},
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
