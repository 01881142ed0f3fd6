"""Lessons about followers: when a slow one leaves the ISR, and how a replica truncates its log."""

from ottla.client.admin import replicas
from ottla.client.admin.replicas import ElectionType
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.observation import (
    checkpointed_high_watermark,
    controller,
    high_watermark,
    log_end_offset,
    partition_image,
    stored,
)
from ottla.learn.stage import Stage

SUBJECT = Subject("replication")
# More records than replica.lag.max.messages had as its default.
_BURST = 4500


@SUBJECT.lesson(
    "slow-replica",
    brokers=3,
    replica_lag_time_max_ms="3000",
    question=Text(
        "A follower is thousands of records behind. When does it leave the ISR?",
        "follower 落后几千条消息，什么时候会离开 ISR？",
    ),
    explanation=Text(
        "Only time counts. Broker {slow} was {behind} records behind and still in the ISR "
        "({isr_behind}): a burst of records says nothing about a follower. The high watermark waited for it, at {hw_behind}. After "
        "replica.lag.time.max.ms ({lag_ms} ms) without catching up it was out ({isr_late}), and the high watermark advanced to {hw_late}, although "
        "its session with ZooKeeper had not ended: the brokers in /brokers/ids were {registered}. A "
        "session (with KRaft: heartbeats to the controller) and a log that keeps up are the two conditions of a live replica. When the network was "
        "back, it caught up and returned ({isr_back}). The option replica.lag.max.messages, removed "
        "in 0.9, does not exist: the broker lists {old_options} option(s) of that name.",
        "只看时间。broker {slow} 落后 {behind} 条时仍在 ISR 中（{isr_behind}）：突发写入并不说明 follower 有问题。高水位等待它，停在 {hw_behind}。"
        "在 replica.lag.time.max.ms（{lag_ms} 毫秒）内没有追上，它就离开了（{isr_late}），高水位前进到 {hw_late}，尽管它与 ZooKeeper 的会话没有结束："
        "/brokers/ids 中有 {registered}。会话有效（KRaft 中是发给 controller 的心跳）、日志跟得上，是副本存活的两个条件。网络恢复后它追上并返回 ISR（{isr_back}）。"
        "0.9 移除的 replica.lag.max.messages 已不存在：broker 列出 {old_options} 个同名选项。",
    ),
)
def slow_replica(stage: Stage) -> None:
    """A follower leaves the ISR because of time, not because of a number of records."""
    cluster = stage.cluster
    topic = stage.topic(replicas=3)
    leader = cluster.leader(topic)
    # Not the controller: without its session it could not accept a new ISR.
    busy = (leader, controller(stage.cluster))
    slow = next(broker for broker in cluster.brokers if broker not in busy)
    stage.send(topic, "first", acks="all")
    stage.show(topic)
    cluster.isolate(slow)
    producer = stage.producer(acks=1, linger_ms=5)
    for number in range(_BURST):
        producer.send(topic, f"r{number}", partition=0)
    producer.flush(20)
    behind = stage.show(topic)
    stage.say(
        "Broker {slow} is cut off and {behind} records behind. ISR: {isr_behind}.",
        "broker {slow} 被断开，落后 {behind} 条。ISR：{isr_behind}。",
        slow=slow,
        behind=log_end_offset(cluster, leader, topic) - log_end_offset(cluster, slow, topic),
        isr_behind=behind.isr,
        hw_behind=behind.high_watermark,
    )
    stage.until(lambda: slow not in partition_image(cluster, topic).isr, "the ISR shrinks")
    # The leader learns of the new ISR a moment later, and only then does the follower not count.
    stage.until(lambda: high_watermark(cluster, topic) > _BURST, "the high watermark advances")
    late = stage.show(topic)
    stage.say(
        "replica.lag.time.max.ms ({lag_ms} ms) has passed. ISR: {isr_late}; registered: {registered}.",
        "已超过 replica.lag.time.max.ms（{lag_ms} 毫秒）。ISR：{isr_late}；已注册：{registered}。",
        lag_ms=stage.broker_option("replica.lag.time.max.ms"),
        isr_late=late.isr,
        hw_late=late.high_watermark,
        registered=sorted(cluster.node(leader).broker.image.brokers),
        old_options=stage.broker_options().count("replica.lag.max.messages"),
    )
    cluster.heal(slow)
    cluster.wait_in_sync(topic)
    stage.say(
        "The network is back. ISR: {isr_back}.",
        "网络恢复。ISR：{isr_back}。",
        isr_back=stage.show(topic).isr,
    )


@SUBJECT.lesson(
    "truncation",
    brokers=3,
    question=Text(
        "A former leader returns with a record that the new leader lacks. Does it truncate its log "
        "to the high watermark?",
        "旧 leader 带着新 leader 没有的消息恢复。它会把日志截断到高水位吗？",
    ),
    explanation=Text(
        "No: to where the leader epochs diverge (KIP-101). Broker {old} was the whole ISR when it wrote "
        "'{doomed}', so the record was below its high watermark: it stored HW {stored_hw}, and its log "
        "ended at {end_before}. Truncation to the high watermark, the rule before 0.11, would have removed "
        "nothing, and the replicas would differ at offset {offset} for ever. Broker {old} asked the new leader "
        "where epoch {old_epoch} ends there, truncated to {offset} and fetched the rest: its log is "
        "{log_old}, the log of broker {new} is {log_new}.",
        "不会：截断到 leader epoch 的分歧点（KIP-101）。broker {old} 写入 '{doomed}' 时 ISR 只有它自己，所以这条消息低于它的高水位："
        "它保存的 HW 是 {stored_hw}，日志末端是 {end_before}。若按 0.11 之前的规则截断到高水位，什么都不会删除，"
        "副本在 offset {offset} 处将永远不同。broker {old} 询问新 leader：epoch {old_epoch} 在哪里结束，截断到 {offset} 再拉取其余部分："
        "它的日志是 {log_old}，broker {new} 的是 {log_new}。",
    ),
)
def truncation(stage: Stage) -> None:
    """A record below the high watermark of a former leader is removed: the epochs decide."""
    cluster = stage.cluster
    topic = stage.topic(replicas=2)
    image = partition_image(cluster, topic)
    old = image.leader
    new = next(broker for broker in image.replicas if broker != old)
    stage.send(topic, "kept", acks="all")
    stage.kill(new)
    stage.until(lambda: partition_image(cluster, topic).isr == (old,), "the ISR is the leader")
    epoch = partition_image(cluster, topic).leader_epoch
    (doomed,) = stage.send(topic, "doomed", acks="all")
    stage.until(
        lambda: checkpointed_high_watermark(cluster, old, topic) == doomed.offset + 1,
        "the high watermark is on the disk",
    )
    stage.show(topic)
    stage.kill(old)
    stage.say(
        "Broker {old} was alone in the ISR and died. On its disk: HW {stored_hw}, log {log_before}.",
        "broker {old} 是 ISR 中唯一的副本，随后宕机。磁盘上：HW {stored_hw}，日志 {log_before}。",
        old=old,
        old_epoch=epoch,
        stored_hw=checkpointed_high_watermark(cluster, old, topic),
        log_before=_values(stage, old, topic),
        end_before=len(stored(cluster, old, topic)),
        doomed=stored(cluster, old, topic)[doomed.offset].value,
    )
    cluster.restart(new)
    stage.until(lambda: new in cluster.node(new).broker.image.brokers, "the broker is known")
    with cluster.admin() as brokers:
        replicas.elect_leaders(brokers, [(topic, 0)], election_type=ElectionType.UNCLEAN)
    stage.await_leader_other_than(old, topic)
    (reused,) = stage.send(topic, "new", acks=1)
    stage.show(topic)
    stage.say(
        "An unclean election made broker {new} the leader; it wrote 'new' at offset {offset}. Broker {old} "
        "starts.",
        "unclean 选举后 broker {new} 成为 leader，并在 offset {offset} 写入 'new'。broker {old} 启动。",
        new=new,
        offset=reused.offset,
    )
    cluster.restart(old)
    cluster.wait_in_sync(topic)
    stage.show(topic)
    stage.say(
        "Broker {old} is in sync. Its log: {log_old}; the log of broker {new}: {log_new}.",
        "broker {old} 已同步。它的日志：{log_old}；broker {new} 的日志：{log_new}。",
        log_old=_values(stage, old, topic),
        log_new=_values(stage, new, topic),
    )


def _values(stage: Stage, broker: int, topic: str) -> list[str]:
    return [slot.value for slot in stored(stage.cluster, broker, topic)]
