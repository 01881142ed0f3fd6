"""The target of a copy: its configuration, and the copies that are refused.

A copy keeps the partition, key, value (also null), headers and timestamp of each record. It leaves
out control records and the records of aborted transactions.
"""

from ottla.base.errors import ConfigError
from ottla.client.admin import configs, topics
from ottla.client.brokers import Brokers

KEPT = ("key", "value", "headers", "timestamp", "partition")
"""The parts of a record that a copy keeps; its offset differs."""
# They name partitions of the source and brokers of its cluster.
_THROTTLES = (
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
)  # fmt: skip
# With them the broker could replace or refuse the timestamps of the source.
_TIMESTAMPS = (
    "message.timestamp.difference.max.ms", "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms", "message.timestamp.type",
)  # fmt: skip
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
        and entry.name not in left_out
    }


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


def cluster_id(brokers: Brokers) -> str:
    """Return the id of a cluster; empty if the brokers report no id."""
    return brokers.metadata([]).cluster_id or ""
