"""Values of options for people, and the effect of a change: what happens, and when."""

from ottla.operations.numbers import LONG_MAX, whole_number

_S, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_UNITS_MS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_S, "s"))
_UNITS_BYTES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))

_RESTART = "Read-only: change it in the broker's configuration file and restart the broker."
_AT_ONCE = "Takes effect without a restart."

_EFFECTS = {
    "cleanup.policy": (
        "Chooses deletion by age and size, compaction by key, or both. Changing to delete removes old "
        "segments within minutes; changing to compact requires that every record has a key."
    ),
    "retention.ms": (
        "A lower value deletes older segments at the next check (log.retention.check.interval.ms). "
        "Deleted records cannot be restored."
    ),
    "retention.bytes": (
        "Limits each partition, not the topic. A lower value deletes the oldest segments at the "
        "next check. Deleted records cannot be restored."
    ),
    "min.insync.replicas": (
        "Producers with acks=all receive NOT_ENOUGH_REPLICAS while fewer replicas are in sync. A value "
        "above the replication factor stops all of them."
    ),
    "max.message.bytes": (
        "Producers receive MESSAGE_TOO_LARGE for larger batches. Consumers with a smaller "
        "fetch.max.bytes still make progress."
    ),
    "compression.type": (
        "Applies to new batches. A value other than producer makes the broker compress batches again, "
        "which costs CPU."
    ),
    "segment.bytes": "Applies to segments that are created from now on. Small segments cost files.",
    "segment.ms": "Older active segments are closed at the next append, so that retention can delete them.",
    "message.timestamp.type": (
        "Applies to new records. Lag in seconds and offsets by time use these timestamps."
    ),
    "unclean.leader.election.enable": (
        "If true, a replica that is not in sync can become leader, and acknowledged records can be "
        "lost. Offline partitions elect a leader at once."
    ),
    "min.cleanable.dirty.ratio": "A lower value compacts more often and writes more to the disk.",
    "min.compaction.lag.ms": "Records younger than this are not compacted.",
    "max.compaction.lag.ms": "Records older than this are compacted, whatever the dirty ratio is.",
    "delete.retention.ms": "Consumers that read from the beginning must finish in this time to see every tombstone.",
    "flush.messages": "Syncs the log after this number of records; low values cost throughput.",
    "flush.ms": "Syncs the log after this time; low values cost throughput.",
    "leader.replication.throttled.replicas": "The replicas whose leaders limit replication traffic. Remove it after a reassignment.",
    "follower.replication.throttled.replicas": "The replicas whose followers limit replication traffic. Remove it after a reassignment.",
    "leader.replication.throttled.rate": "Bytes per second that this broker sends for throttled replicas. Too low a value never lets them catch up.",
    "follower.replication.throttled.rate": "Bytes per second that this broker fetches for throttled replicas. Too low a value never lets them catch up.",
    "log.retention.ms": "The default of topics without retention.ms. A lower value deletes records of all of them.",
    "log.retention.bytes": "The default of topics without retention.bytes. A lower value deletes records of all of them.",
    "log.cleanup.policy": "The default of topics without cleanup.policy.",
    "auto.create.topics.enable": "If true, a producer or consumer with a misspelled topic name creates that topic.",
    "num.partitions": "The number of partitions of topics that are created without one.",
    "default.replication.factor": "The replication factor of topics that are created without one.",
}  # fmt: skip


def effect_of(name: str, *, is_read_only: bool) -> str:
    """Return what a change of an option means and when it takes effect. Pure."""
    if is_read_only:
        return _RESTART
    known = _EFFECTS.get(name)
    return f"{known} {_AT_ONCE}" if known else _AT_ONCE


def shown_value(name: str, value: str) -> str:
    """Return the value of an option for people: "604800000 (7 d)", "unlimited". Pure."""
    number = whole_number(value)
    if number is None:
        return value
    is_time, is_size = name.endswith(".ms"), name.endswith(".bytes")
    if number == LONG_MAX or (number == -1 and (is_time or is_size)):
        return "unlimited"
    if is_time or is_size:
        return _with_unit(number, _UNITS_MS if is_time else _UNITS_BYTES)
    return value


def _with_unit(number: int, units: tuple[tuple[int, str], ...]) -> str:
    for size, unit in units:
        if number >= size:
            return f"{number} ({number / size:.4g} {unit})"
    return str(number)
