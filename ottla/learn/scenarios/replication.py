"""Lessons about replication: acknowledgements, the high watermark, in-sync replicas, elections."""

from ottla.base.errors import ApiError
from ottla.client.admin import replicas
from ottla.client.admin.replicas import ElectionType
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.observation import (
    coordinator,
    high_watermark,
    log_end_offset,
    partition_image,
    requests_count,
    stored,
)
from ottla.learn.stage import Stage

SUBJECT = Subject("replication")


@SUBJECT.lesson(
    "acks-1",
    brokers=3,
    question=Text(
        "A producer uses acks=1 and the leader dies. Does Kafka lose an acknowledged record?",
        "生产者使用 acks=1，leader 宕机。Kafka 会丢失已经确认的消息吗？",
    ),
    explanation=Text(
        "Yes. With acks=1 the leader alone acknowledged {lost_value} at offset {lost_offset}; no "
        "follower had copied it. Broker {new_leader} became leader without it, and offset "
        "{reused_offset} now holds {reused_value}. When broker {old_leader} returned, it truncated "
        "its log where the leader epochs diverge (KIP-101), not at its high watermark (lesson truncation). Use acks=all "
        "with min.insync.replicas=2 for records that must survive (lesson acks-all).",
        "会。acks=1 时只有 leader 确认了 {lost_value}（offset {lost_offset}），没有 follower 复制过它。"
        "broker {new_leader} 在没有这条消息的情况下成为 leader，offset {reused_offset} 现在是 {reused_value}。"
        "broker {old_leader} 恢复后按 leader epoch 的分歧点截断日志（KIP-101），而不是按高水位（HW）截断（见课程 truncation）。"
        "不能丢的消息请使用 acks=all 和 min.insync.replicas=2（见课程 acks-all）。",
    ),
)
def acks_1(stage: Stage) -> None:
    """The record that only the leader had is gone, and its offset is used again."""
    topic = stage.topic(replicas=3)
    old = stage.cluster.leader(topic)
    stage.send(topic, "paid-1", "paid-2", acks="all")
    stage.show(topic)
    stage.say(
        "Broker {old_leader} leads. Now it loses the other brokers, but clients still reach it.",
        "broker {old_leader} 是 leader。现在它与其他 broker 断开，但客户端仍能访问它。",
        old_leader=old,
    )
    stage.cluster.isolate(old)
    (lost_record,) = stage.send(topic, "paid-3", acks=1)
    stage.show(topic)
    stage.say(
        "The producer sees a success: {lost_value} has offset {lost_offset}. Now the leader dies.",
        "生产者没有发现异常：{lost_value} 已确认，offset {lost_offset}。现在 leader 宕机。",
        lost_value=stored(stage.cluster, old, topic)[lost_record.offset].value,
        lost_offset=lost_record.offset,
    )
    stage.kill(old)
    stage.await_leader_other_than(old, topic)
    new = stage.cluster.leader(topic)
    readable = stage.values(topic)
    stage.show(topic)
    stage.say(
        "Broker {new_leader} leads. Consumers read: {readable}. The next record takes the offset.",
        "broker {new_leader} 成为 leader。消费者能读到：{readable}。下一条消息会占用这个 offset。",
        new_leader=new,
        readable=readable,
    )
    (reused,) = stage.send(topic, "paid-4", acks="all")
    stage.cluster.heal(old)
    stage.cluster.restart(old)
    stage.cluster.wait_in_sync(topic)
    stage.show(topic)
    stage.say(
        "Broker {old_leader} is back. Its log holds: {old_leader_log}.",
        "broker {old_leader} 恢复了。它的日志内容：{old_leader_log}。",
        reused_value=stored(stage.cluster, old, topic)[reused.offset].value,
        reused_offset=reused.offset,
        old_leader_log=[slot.value for slot in stored(stage.cluster, old, topic)],
    )


@SUBJECT.lesson(
    "acks-all",
    brokers=3,
    question=Text(
        "Does acks=all wait for all replicas? What does min.insync.replicas add?",
        "acks=all 是否等待所有副本？min.insync.replicas 又起什么作用？",
    ),
    explanation=Text(
        "acks=all waits for the in-sync replicas (ISR), not for all assigned ones: with a replica "
        "down, offset {with_two} was acknowledged by ISR {isr_two}. With ISR {isr_one} the leader "
        "rejected the record with {error}, because min.insync.replicas is {min_isr}: a record is "
        "acknowledged only if at least that many brokers have it.",
        "acks=all 等待的是 ISR 中的副本，而不是全部副本：一个副本宕机后，offset {with_two} 由 ISR {isr_two} 确认。"
        "当 ISR 只剩 {isr_one} 时，leader 以 {error} 拒绝写入，因为 min.insync.replicas={min_isr}："
        "至少有这么多 broker 拥有消息，写入才会被确认。",
    ),
)
def acks_all(stage: Stage) -> None:
    """Two in-sync replicas acknowledge a record; one alone rejects it."""
    topic = stage.topic(replicas=3, min_insync_replicas="2")
    leader = stage.cluster.leader(topic)
    first, second = [broker for broker in stage.cluster.brokers if broker != leader]
    stage.send(topic, "one", acks="all")
    stage.show(topic)
    stage.say("Follower {first} dies.", "follower {first} 宕机。", first=first)
    stage.kill(first)
    stage.until(
        lambda: first not in partition_image(stage.cluster, topic).isr, "the ISR has two brokers"
    )
    (metadata,) = stage.send(topic, "two", acks="all")
    isr_two = stage.show(topic).isr
    stage.say(
        "min.insync.replicas is {min_isr}, and the ISR is {isr_two}: offset {with_two} is "
        "acknowledged. Now follower {second} dies, too.",
        "min.insync.replicas={min_isr}，ISR 为 {isr_two}：offset {with_two} 已确认。现在 follower {second} 也宕机。",
        min_isr=stage.topic_option(topic, "min.insync.replicas"),
        isr_two=isr_two,
        with_two=metadata.offset,
        second=second,
    )
    stage.kill(second)
    stage.until(
        lambda: partition_image(stage.cluster, topic).isr == (leader,), "the ISR is the leader"
    )
    try:
        stage.send(topic, "three", acks="all", retries=0)
        error = "none"
    except ApiError as refused:
        error = refused.code.name
    isr_one = stage.show(topic).isr
    stage.say(
        "The producer's result: {error}. Nothing was appended: the log ends at {end}.",
        "生产者得到的结果：{error}。没有写入任何内容：日志末端为 {end}。",
        error=error,
        isr_one=isr_one,
        end=log_end_offset(stage.cluster, leader, topic),
    )


@SUBJECT.lesson(
    "acks-0",
    question=Text(
        "What does a producer learn with acks=0? And is there a limit on the size of a record?",
        "acks=0 时生产者能知道什么？消息大小有限制吗？",
    ),
    explanation=Text(
        "With acks=0 the broker sends no response at all, so the future completes without an offset "
        "({offset_with_0}), even for a record of {size} bytes that the broker rejected: the log "
        "still ends at {end_with_0}. With acks=1 the same record fails with {error}. The limit is "
        "max.message.bytes ({limit} here), a limit for a batch after compression.",
        "acks=0 时 broker 完全不返回响应，future 完成但没有 offset（{offset_with_0}），即使 broker 拒绝了这条 {size} 字节的消息："
        "日志末端仍是 {end_with_0}。acks=1 时同一条消息以 {error} 失败。限制是 max.message.bytes（这里为 {limit}），针对压缩后的一个批次。",
    ),
)
def acks_0(stage: Stage) -> None:
    """A rejected record looks like a sent one with acks=0, and fails with acks=1."""
    topic = stage.topic(max_message_bytes="1000")
    value = "x" * 2000
    (silent,) = stage.send(topic, value, acks=0)
    stage.say(
        "A record of {size} bytes, sent with acks=0: no error, offset {offset_with_0}.",
        "用 acks=0 发送 {size} 字节的消息：没有错误，offset 为 {offset_with_0}。",
        size=len(value),
        offset_with_0=silent.offset,
        limit=stage.topic_option(topic, "max.message.bytes"),
    )
    try:
        stage.send(topic, value, acks=1)
        error = "none"
    except ApiError as refused:
        error = refused.code.name
    stage.show(topic)
    stage.say(
        "The same record with acks=1: {error}. The log ends at {end_with_0}.",
        "同一条消息用 acks=1：{error}。日志末端为 {end_with_0}。",
        error=error,
        end_with_0=log_end_offset(stage.cluster, 1, topic),
    )


@SUBJECT.lesson(
    "high-watermark",
    brokers=3,
    question=Text(
        "What are HW and LEO? Do consumers see written, flushed or replicated records?",
        "什么是 HW 和 LEO？消费者能看到哪些消息：已写入的、已刷盘的还是已复制的？",
    ),
    explanation=Text(
        "The log end offset (LEO) is the next offset of one replica. The high watermark (HW) is the "
        "smallest LEO of the in-sync replicas; consumers read below it. With the followers cut off, "
        "the leader's LEO was {leo_cut} and the HW stayed {hw_cut}: consumers read {read_cut}. "
        "Followers pull records, as consumers do; the leader pushes nothing: {fetches} Fetch requests reached "
        "it, and {pushes} Produce requests the followers. Once they could fetch again, the HW was {hw_healed}. Flushes to disk do not matter.",
        "LEO 是单个副本下一条消息的 offset。HW 是 ISR 中最小的 LEO，消费者只能读 HW 之前的消息。"
        "follower 断开后，leader 的 LEO 为 {leo_cut}，HW 停在 {hw_cut}：消费者读到 {read_cut}。"
        "follower 像消费者一样拉取消息，leader 从不推送：leader 收到 {fetches} 次 Fetch，follower 收到 {pushes} 次 Produce；恢复后 HW 为 {hw_healed}。刷盘与此无关。",
    ),
)
def hw_and_leo(stage: Stage) -> None:
    """A record that no follower has is invisible until the followers have fetched it."""
    topic = stage.topic(replicas=3)
    cluster = stage.cluster
    leader = cluster.leader(topic)
    followers = [broker for broker in cluster.brokers if broker != leader]
    # A consumer looks for a coordinator, which needs a topic that only the controller can create.
    coordinator(cluster, stage.name)
    cluster.wait_in_sync(GROUP_OFFSETS_TOPIC)
    produced = _produced(stage, followers)
    stage.send(topic, "seen", acks="all")
    stage.show(topic)
    stage.say(
        "The followers {followers} lose their connections to the leader.",
        "follower {followers} 与 leader 断开。",
        followers=followers,
    )
    for follower in followers:
        cluster.isolate(follower)
    stage.send(topic, "unseen", acks=1)
    view = stage.show(topic)
    stage.say(
        "acks=1 acknowledged a record. LEO {leo_cut}, HW {hw_cut}; a consumer reads: {read_cut}.",
        "acks=1 确认了一条消息。LEO {leo_cut}，HW {hw_cut}；消费者读到：{read_cut}。",
        leo_cut=log_end_offset(cluster, leader, topic),
        hw_cut=view.high_watermark,
        read_cut=stage.values(topic),
    )
    fetches = requests_count(cluster, leader, "Fetch")
    for follower in followers:
        cluster.heal(follower)
    stage.until(lambda: high_watermark(cluster, topic) > view.high_watermark, "the HW advances")
    stage.show(topic)
    stage.say(
        "The followers fetch again: {fetches} Fetch requests to the leader, {pushes} Produce requests to the "
        "followers. HW {hw_healed}; a consumer reads: {read_healed}.",
        "follower 重新拉取：leader 收到 {fetches} 次 Fetch，follower 收到 {pushes} 次 Produce。HW {hw_healed}；消费者读到：{read_healed}。",
        fetches=requests_count(cluster, leader, "Fetch") - fetches,
        pushes=_produced(stage, followers) - produced,
        hw_healed=high_watermark(cluster, topic),
        read_healed=stage.values(topic),
    )


def _produced(stage: Stage, followers: list[int]) -> int:
    return sum(requests_count(stage.cluster, broker, "Produce") for broker in followers)


@SUBJECT.lesson(
    "isr",
    brokers=3,
    question=Text(
        "What are AR, ISR and OSR? Must an operator add a recovered replica to the ISR again?",
        "AR、ISR、OSR 分别是什么？副本恢复后需要人工加回 ISR 吗？",
    ),
    explanation=Text(
        "AR is every assigned replica ({assigned}), ISR the ones that keep up, OSR the rest. Broker "
        "{failed} left the ISR ({isr_during}) when its session with ZooKeeper ended; a live but slow "
        "one leaves after replica.lag.time.max.ms ({lag_ms} ms) without catching up. These are the "
        "two liveness conditions (lesson slow-replica). After its restart broker {failed} fetched what it had missed, and "
        "joined the ISR ({isr_after}) by itself. replica.lag.max.messages was removed in 0.9.",
        "AR 是全部分配的副本（{assigned}），ISR 是跟得上的副本，OSR 是其余副本。broker {failed} 与 ZooKeeper 的会话结束后离开 ISR"
        "（{isr_during}）；存活但落后的副本在 replica.lag.time.max.ms（{lag_ms} ms）内没有追上也会离开。这就是两个存活条件（见课程 slow-replica）。"
        "broker {failed} 重启后拉取缺失的消息，并自动重新加入 ISR（{isr_after}）。replica.lag.max.messages 在 0.9 已移除。",
    ),
)
def isr(stage: Stage) -> None:
    """A killed follower leaves the ISR, and returns to it without an operator."""
    topic = stage.topic(replicas=3)
    cluster = stage.cluster
    leader = cluster.leader(topic)
    failed = next(broker for broker in cluster.brokers if broker != leader)
    stage.send(topic, "one", acks="all")
    view = stage.show(topic)
    stage.say(
        "All replicas {assigned} are in sync. Broker {failed} dies.",
        "所有副本 {assigned} 都同步。broker {failed} 宕机。",
        assigned=[replica.broker for replica in view.replicas],
        failed=failed,
    )
    stage.kill(failed)
    stage.until(lambda: failed not in partition_image(cluster, topic).isr, "the ISR shrinks")
    stage.send(topic, "two", "three", acks="all")
    during = stage.show(topic)
    stage.say(
        "The ISR is {isr_during}; acks=all needs only these. Broker {failed} starts again.",
        "ISR 为 {isr_during}；acks=all 只需要这些副本。broker {failed} 重新启动。",
        isr_during=during.isr,
        failed=failed,
    )
    cluster.restart(failed)
    cluster.wait_in_sync(topic)
    after = stage.show(topic)
    stage.say(
        "The ISR is {isr_after} again, and broker {failed} has {caught_up}.",
        "ISR 又是 {isr_after}，broker {failed} 拥有 {caught_up}。",
        isr_after=after.isr,
        caught_up=[slot.value for slot in stored(cluster, failed, topic)],
        lag_ms=stage.broker_option("replica.lag.time.max.ms"),
    )


@SUBJECT.lesson(
    "unclean-election",
    brokers=3,
    question=Text(
        "All in-sync replicas are gone, another replica is alive. Does it become the leader?",
        "ISR 中的副本全部宕机，只有一个不在 ISR 中的副本存活。它会成为 leader 吗？",
    ),
    explanation=Text(
        "Not by itself: unclean.leader.election.enable is {default} by default since 0.11, so the "
        "partition had no leader ({leader_waiting}) while broker {behind} was alive. After an unclean "
        "election broker {new_leader} led, and the records were {survivors}: {lost} is lost, though "
        "it was acknowledged with acks=all. It is a choice between availability and consistency.",
        "不会自动成为：自 0.11 起 unclean.leader.election.enable 默认为 {default}，所以 broker {behind} 存活时分区没有 leader"
        "（{leader_waiting}）。执行 unclean 选举后 broker {new_leader} 成为 leader，消息只剩 {survivors}：{lost} 丢失了，"
        "尽管它曾用 acks=all 确认。这是可用性与一致性的取舍。",
    ),
)
def unclean_election(stage: Stage) -> None:
    """A replica outside of the ISR leads only after an unclean election, which loses records."""
    cluster = stage.cluster
    topic = stage.topic(replicas=2)
    image = partition_image(cluster, topic)
    leader = image.leader
    behind = next(broker for broker in image.replicas if broker != leader)
    stage.send(topic, "kept", acks="all")
    stage.kill(behind)
    stage.until(lambda: partition_image(cluster, topic).isr == (leader,), "the ISR is the leader")
    stage.send(topic, "doomed", acks="all")
    stage.show(topic)
    stage.say(
        "Broker {behind} was down while 'doomed' was written. Now the leader {leader} dies, and "
        "broker {behind} starts.",
        "写入 'doomed' 时 broker {behind} 已宕机。现在 leader {leader} 宕机，broker {behind} 启动。",
        behind=behind,
        leader=leader,
    )
    stage.kill(leader)
    cluster.restart(behind)
    stage.until(lambda: _knows(stage, behind, topic), f"broker {behind} knows the topic")
    waiting = stage.show(topic)
    stage.say(
        "Leader: {leader_waiting} (none). unclean.leader.election.enable={default}. Elect anyway:",
        "leader：{leader_waiting}（无）。unclean.leader.election.enable={default}。强制选举：",
        leader_waiting=waiting.leader,
        default=stage.topic_option(topic, "unclean.leader.election.enable"),
    )
    with cluster.admin() as brokers:
        replicas.elect_leaders(brokers, [(topic, 0)], election_type=ElectionType.UNCLEAN)
    stage.await_leader_other_than(leader, topic)
    survivors = stage.values(topic)
    cluster.restart(leader)
    cluster.wait_in_sync(topic)
    stage.show(topic)
    stage.say(
        "Broker {new_leader} leads. Consumers read {survivors}; lost: {lost}.",
        "broker {new_leader} 成为 leader。消费者读到 {survivors}；丢失：{lost}。",
        new_leader=behind,
        survivors=survivors,
        lost=sorted({"kept", "doomed"} - set(survivors)),
    )


def _knows(stage: Stage, broker: int, topic: str) -> bool:
    image = stage.cluster.node(broker).broker.image
    partition = image.partition(topic, 0)
    return partition is not None and broker in image.brokers
