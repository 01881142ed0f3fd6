"""Exercises about settings: retention, compaction, partitions, quotas."""

from ottla.client.admin import quotas, topics
from ottla.learn.events import Text
from ottla.learn.exercises.exercise import Check, ExerciseList
from ottla.learn.stage import Stage

LIST = ExerciseList()
_BYTES = 1_048_576


def _option(stage: Stage, topic: str, name: str, wanted: str) -> Check:
    def check() -> Text | None:
        value = stage.topic_option(topic, name)
        return None if value == wanted else Text(f"{name} is {value}.", f"{name} 为 {value}。")

    return check


@LIST.exercise(
    "keep-a-day",
    task=Text(
        "Topic keep-a-day keeps its records for a week. Keep them for one day.",
        "topic keep-a-day 保留消息一周。改为一天。",
    ),
    hints=(
        Text(
            "`ottla topic config keep-a-day --all`: which option is about the time of retention, and in which unit?",
            "`ottla topic config keep-a-day --all`：哪个选项是保留时间，单位是什么？",
        ),
        Text(
            "`ottla topic config keep-a-day --set retention.ms=86400000`",
            "`ottla topic config keep-a-day --set retention.ms=86400000`",
        ),
    ),
)
def keep_a_day(stage: Stage) -> Check:
    """A topic with the default of Apache Kafka, seven days."""
    topic = stage.topic(retention_ms="604800000")
    return _option(stage, topic, "retention.ms", "86400000")


@LIST.exercise(
    "keep-the-last",
    task=Text(
        "Topic keep-the-last has one record for each change of a customer. Keep the last record of each key, however old it is.",
        "topic keep-the-last 中每条消息是客户的一次变更。无论多旧，只保留每个 key 的最后一条。",
    ),
    hints=(
        Text(
            "The option cleanup.policy has the values delete and compact.",
            "选项 cleanup.policy 的值有 delete 和 compact。",
        ),
        Text(
            "`ottla topic config keep-the-last --set cleanup.policy=compact`",
            "`ottla topic config keep-the-last --set cleanup.policy=compact`",
        ),
    ),
)
def keep_the_last(stage: Stage) -> Check:
    """A topic that is not compacted."""
    return _option(stage, stage.topic(), "cleanup.policy", "compact")


@LIST.exercise(
    "three-at-once",
    task=Text(
        "Topic three-at-once has one partition, so one consumer of a group reads. Let three read at the same time.",
        "topic three-at-once 只有一个分区，所以组内只有一个消费者在读。让三个同时读。",
    ),
    hints=(
        Text(
            "A partition has one reader in a group. Partitions can be added.",
            "一个分区在组内只有一个读者。分区可以增加。",
        ),
        Text(
            "`ottla topic add-partitions three-at-once --total 3`",
            "`ottla topic add-partitions three-at-once --total 3`",
        ),
    ),
)
def three_at_once(stage: Stage) -> Check:
    """A topic with one partition."""
    topic = stage.topic()

    def check() -> Text | None:
        with stage.cluster.admin() as brokers:
            count = len(topics.describe_topic(brokers, topic).partitions)
        return None if count == 3 else Text(f"Partitions: {count}.", f"分区数：{count}。")

    return check


@LIST.exercise(
    "slow-the-loader",
    task=Text(
        "Clients with the id loader send so much that others are slow. Limit each broker to 1 MiB/s from them.",
        "id 为 loader 的客户端发送太多，影响了其他客户端。把它们对每个 broker 的写入限制为 1 MiB/s。",
    ),
    hints=(
        Text(
            "A quota of a client id: `ottla quota set --help`. 1 MiB is 1048576 bytes.",
            "按客户端 id 的配额：`ottla quota set --help`。1 MiB 为 1048576 字节。",
        ),
        Text(
            "`ottla quota set --client-id loader --set producer_byte_rate=1048576`",
            "`ottla quota set --client-id loader --set producer_byte_rate=1048576`",
        ),
    ),
)
def slow_the_loader(stage: Stage) -> Check:
    """A cluster without quotas."""

    def check() -> Text | None:
        with stage.cluster.admin() as brokers:
            rows = quotas.describe_client_quotas(brokers, {"client-id": "loader"}, strict=True)
        rates = [row.values.get("producer_byte_rate") for row in rows]
        shown = ", ".join(str(rate) for rate in rates) or "-"
        text = Text(f"The rate of loader is: {shown}.", f"loader 的速率：{shown}。")
        return None if rates == [_BYTES] else text

    return check
