"""Exercises about replicas: the ISR, acknowledgements, leaders, and more replicas."""

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import replicas
from ottla.client.admin.configs import Resource, ResourceType, alter_config
from ottla.learn.events import Text
from ottla.learn.exercises.exercise import Check, ExerciseList
from ottla.learn.observation import partition_image
from ottla.learn.stage import Stage

LIST = ExerciseList()
_THROTTLED = "follower.replication.throttled.replicas"
_RATE = "follower.replication.throttled.rate"
_RECORD = "x" * 10_000
_ACKNOWLEDGED = Text("The record was acknowledged by one replica.", "一个副本就确认了消息。")


def _isr(stage: Stage, topic: str, size: int) -> Check:
    def check() -> Text | None:
        isr = partition_image(stage.cluster, topic).isr
        text = ", ".join(map(str, isr))
        return None if len(isr) == size else Text(f"The ISR is {text}.", f"ISR 为 {text}。")

    return check


@LIST.exercise(
    "isr-to-three",
    brokers=3,
    replica_lag_time_max_ms="1000",
    task=Text(
        "Topic isr-to-three has three replicas, and two of them are in sync. All brokers run. Bring the ISR back to three.",
        "topic isr-to-three 有三个副本，只有两个同步。所有 broker 都在运行。让 ISR 恢复为三个。",
    ),
    hints=(
        Text(
            "Which options does the topic have? `ottla topic config isr-to-three`",
            "这个 topic 有哪些选项？`ottla topic config isr-to-three`",
        ),
        Text(
            "A throttle of replication slows a follower that is out of the ISR. Remove it with --unset.",
            "复制限流会拖慢不在 ISR 中的 follower。用 --unset 去掉它。",
        ),
    ),
)
def isr_to_three(stage: Stage) -> Check:
    """A follower that is out of the ISR is throttled to one byte per second."""
    cluster, topic = stage.cluster, stage.topic(replicas=3)
    leader = cluster.leader(topic)
    busy = (leader, cluster.controller())
    slow = next(broker for broker in cluster.brokers if broker not in busy)
    stage.send(topic, "first", acks="all")
    with cluster.admin() as brokers:
        alter_config(brokers, Resource(ResourceType.BROKER, str(slow)), {_RATE: "1"})
    cluster.isolate(slow)
    stage.send(topic, *([_RECORD] * 20), acks=1)
    stage.until(lambda: slow not in partition_image(cluster, topic).isr, "the ISR shrinks")
    with cluster.admin() as brokers:
        alter_config(brokers, Resource(ResourceType.TOPIC, topic), {_THROTTLED: f"0:{slow}"})
    cluster.heal(slow)
    return _isr(stage, topic, 3)


@LIST.exercise(
    "no-more-loss",
    brokers=3,
    # Long enough that no follower leaves the ISR before the leader dies.
    replica_lag_time_max_ms="5000",
    task=Text(
        "Topic no-more-loss has lost the record 'paid-2', which acks=1 had acknowledged: the leader died before a follower had it. Make the topic refuse a record of a producer with acks=all unless two replicas have it.",
        "topic no-more-loss 丢失了 acks=1 已确认的消息 'paid-2'：leader 在 follower 复制之前宕机。请设置 topic，使 acks=all 的生产者只有在两个副本都写入时才会成功。",
    ),
    hints=(
        Text(
            "acks=all waits for the ISR, which may have one member. An option of the topic bounds that.",
            "acks=all 等待 ISR，而 ISR 可能只有一个成员。topic 的一个选项限制它。",
        ),
        Text(
            "`ottla topic config no-more-loss --set min.insync.replicas=2`",
            "`ottla topic config no-more-loss --set min.insync.replicas=2`",
        ),
    ),
)
def no_more_loss(stage: Stage) -> Check:
    """A record is lost with acks=1; the check kills the followers and sends with acks=all."""
    cluster, topic = stage.cluster, stage.topic(replicas=3)
    stage.send(topic, "paid-1", acks="all")
    leader = cluster.leader(topic)
    _cut(stage, leader)
    stage.send(topic, "paid-2", acks=1)
    stage.kill(leader)
    for broker in cluster.live_brokers:
        cluster.heal(broker)
    stage.await_leader_other_than(leader, topic)
    cluster.restart(leader)
    cluster.wait_in_sync(topic)

    def check() -> Text | None:
        value = stage.topic_option(topic, "min.insync.replicas")
        if value != "2":
            return Text(f"min.insync.replicas is {value}.", f"min.insync.replicas 为 {value}。")
        return None if _is_refused(stage, topic) else _ACKNOWLEDGED

    return check


def _is_refused(stage: Stage, topic: str) -> bool:
    """Return True if a record is refused while both followers are down; restart them."""
    cluster = stage.cluster
    leader = cluster.leader(topic)
    followers = [broker for broker in cluster.brokers if broker != leader]
    for broker in followers:
        stage.kill(broker)
    try:
        stage.until(lambda: len(partition_image(cluster, topic).isr) == 1, "the ISR shrinks")
        stage.send(topic, "paid-3", acks="all", retries=0)
    except ApiError as error:
        return error.code in (
            ErrorCode.NOT_ENOUGH_REPLICAS,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        )
    finally:
        for broker in followers:
            cluster.restart(broker)
        cluster.wait_in_sync(topic)
    return False


def _cut(stage: Stage, leader: int) -> None:
    for broker in stage.cluster.brokers:
        if broker != leader:
            stage.cluster.isolate(broker)


@LIST.exercise(
    "spread-leaders",
    brokers=3,
    task=Text(
        "One broker leads all three partitions of spread-leaders since the others were restarted. Let each partition be led by its first replica again.",
        "其他 broker 重启后，spread-leaders 的三个分区都由一个 broker 领导。让每个分区重新由第一个副本领导。",
    ),
    hints=(
        Text(
            "The first replica in the list is the preferred one: `ottla topic describe spread-leaders`",
            "列表中的第一个副本是首选副本：`ottla topic describe spread-leaders`",
        ),
        Text(
            "`ottla cluster elect spread-leaders --execute`",
            "`ottla cluster elect spread-leaders --execute`",
        ),
    ),
)
def spread_leaders(stage: Stage) -> Check:
    """Two brokers were restarted, and no election has brought their leaders back."""
    cluster, topic = stage.cluster, stage.topic(partitions=3, replicas=3)
    for broker in [one for one in cluster.brokers if one != cluster.leader(topic)]:
        led = [n for n in range(3) if partition_image(cluster, topic, n).leader == broker]
        stage.kill(broker)
        for number in led:
            stage.await_leader_other_than(broker, topic, number)
        cluster.restart(broker)
        cluster.wait_in_sync(topic)

    def check() -> Text | None:
        images = [partition_image(cluster, topic, number) for number in range(3)]
        wrong = [image.partition for image in images if image.leader != image.replicas[0]]
        names = ", ".join(map(str, wrong))
        text = Text(
            f"Partitions {names} are led by another replica.", f"分区 {names} 由其他副本领导。"
        )
        return text if wrong else None

    return check


@LIST.exercise(
    "second-replica",
    brokers=3,
    task=Text(
        "Topic second-replica has one replica. Give it two, on any brokers.",
        "topic second-replica 只有一个副本。让它有两个副本，broker 任选。",
    ),
    hints=(
        Text(
            "A reassignment changes the replicas of a partition: `ottla cluster move --help`",
            "重分配可以改变分区的副本：`ottla cluster move --help`",
        ),
        Text(
            "`ottla cluster move second-replica --to 1,2 --execute`",
            "`ottla cluster move second-replica --to 1,2 --execute`",
        ),
    ),
)
def second_replica(stage: Stage) -> Check:
    """The partition is on one broker."""
    topic = stage.topic()
    stage.send(topic, "first")

    def check() -> Text | None:
        image = partition_image(stage.cluster, topic)
        with stage.cluster.admin() as brokers:
            moves = replicas.list_partition_reassignments(brokers)
        if len(image.replicas) == len(image.isr) == 2 and not moves:
            return None
        count = len(image.isr)
        return Text(f"Replicas in sync: {count}.", f"同步副本数：{count}。")

    return check
