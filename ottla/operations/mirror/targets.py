"""The target of a copy: its configuration, and the copies that are refused.

A copy keeps the partition, key, value (also null), headers and timestamp of each record. It leaves
out control records and the records of aborted transactions.
"""

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin import configs, topics
from ottla.client.brokers import Brokers

KEPT = ("key", "value", "headers", "timestamp", "partition")
"""The parts of a record that a copy keeps; its offset differs."""
# They name partitions of the source and brokers of its cluster.
_THROTTLES = (
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
)  # fmt: skip
_AFTER, _AFTER_DEFAULT_MS = "message.timestamp.after.max.ms", 3_600_000
# With them the broker could replace or refuse the timestamps of the source.
_TIMESTAMPS = (
    "message.timestamp.difference.max.ms", "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms", "message.timestamp.type",
)  # fmt: skip
_LIMIT = "max.message.bytes"
# They suit the replication factor of the source.
_REPLICATION = ("unclean.leader.election.enable", "min.insync.replicas")


def target_options(
    source: Brokers, topic: str, *, has_records: bool, keeps_replication: bool
) -> dict[str, str]:
    """Return the overrides of a topic that its copy gets.

    A copy for records that has the default replication factor leaves out the options that
    MirrorMaker 2 leaves out (DefaultConfigPropertyFilter).
    """
    left_out = {
        *_THROTTLES,
        *(_TIMESTAMPS if has_records else ()),
        *(() if keeps_replication else _REPLICATION),
    }
    resource = configs.Resource(configs.ResourceType.TOPIC, topic)
    return {
        entry.name: entry.value
        for entry in configs.describe_config(source, resource)
        if entry.source is configs.ConfigSource.DYNAMIC_TOPIC_CONFIG
        and entry.value is not None
        and (entry.name not in left_out or _accepts_more(entry.name, entry.value))
    }


def _accepts_more(name: str, value: str) -> bool:
    """Return True for a limit of timestamps above the default, without which the target would
    refuse records of the source.
    """
    return name == _AFTER and value.isdecimal() and int(value) > _AFTER_DEFAULT_MS


def refuse_itself(
    source: Brokers, topic: topics.Topic, target: Brokers, other: topics.Topic
) -> None:
    """Raise ConfigError if source and target are one topic, whatever the addresses are."""
    if _is_same(source, topic, target, other):
        raise ConfigError(
            f"source and target of {topic.name!r} are the same topic: name another target or "
            "another cluster"
        )


def _is_same(source: Brokers, one: topics.Topic, target: Brokers, other: topics.Topic) -> bool:
    """Return True if it is one topic; brokers before Kafka 2.8 give topics no ids."""
    if one.name != other.name or any(one.topic_id) or any(other.topic_id):
        return one.name == other.name and one.topic_id == other.topic_id
    return cluster_id(source) == cluster_id(target)


def refuse_fewer_partitions(topic: topics.Topic, target: topics.Topic) -> None:
    """Raise ConfigError if the target lacks partitions of the source."""
    count = len(topic.partitions)
    if len(target.partitions) < count:
        raise ConfigError(
            f"topic {target.name!r} has {len(target.partitions)} partitions and "
            f"{topic.name!r} has {count}, but a copy keeps partitions: add some with "
            f"`ottla topic add-partitions {target.name} --total {count}`"
        )


def refuse_smaller_records(source: Brokers, topic: str, target: Brokers, other: str) -> None:
    """Raise ConfigError if the target refuses records that the source accepts: the copy would fail
    at the first of them.
    """
    accepted, limit = _record_limit(source, topic), _record_limit(target, other)
    if accepted is not None and limit is not None and limit < accepted:
        raise ConfigError(
            f"topic {other!r} takes records of {limit} bytes at most, and {topic!r} of {accepted}: "
            f"set {_LIMIT}={accepted} for {other!r} with `ottla topic config`, or copy to another "
            "topic"
        )


def _record_limit(brokers: Brokers, topic: str) -> int | None:
    """Return the largest batch that a topic accepts; None if the caller may not read options."""
    resource = configs.Resource(configs.ResourceType.TOPIC, topic)
    try:
        entries = configs.describe_config(brokers, resource)
    except ApiError as error:
        if error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return None
        raise
    values = [entry.value for entry in entries if entry.name == _LIMIT]
    return int(values[0]) if values and values[0] is not None else None


def cluster_id(brokers: Brokers) -> str:
    """Return the id of a cluster; empty if the brokers report no id."""
    return brokers.metadata([]).cluster_id or ""
