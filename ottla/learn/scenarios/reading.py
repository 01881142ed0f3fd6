"""Lessons about consumers: reading a record again, one partition without a group, pulling."""

import time
from typing import TYPE_CHECKING

from ottla.client.records import TopicPartition
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.observation import RequestCounter
from ottla.learn.stage import Stage

if TYPE_CHECKING:
    from ottla.client import Consumer

SUBJECT = Subject("reading")
_WAIT_MS = 200


@SUBJECT.lesson(
    "replay",
    question=Text(
        "Does reading remove a record, as in other message queues? May two consumers read one partition?",
        "像其他消息队列那样，读取后消息会被删除吗？两个消费者可以读同一个分区吗？",
    ),
    explanation=Text(
        "Reading removes nothing: group billing read {billing}, group audit read {audit} of the same "
        "partition, and billing read {again} again after a seek. The broker keeps no state of a record, "
        "only one committed offset for each group and partition: {committed}. Retention deletes "
        "records by age or size, read or not ({log_after} records are still stored). Within one group each partition has one "
        "member; only share groups (KIP-932, Apache Kafka 4.2) let several read it.",
        "读取不会删除消息：billing 组读到 {billing}，audit 组从同一分区读到 {audit}，billing 在 seek 后又读到 {again}。"
        "broker 不保存每条消息的状态，只保存每个组在每个分区的一个已提交 offset：{committed}。消息按时间或大小过期删除，与是否读过无关（仍存有 {log_after} 条）。"
        "同一个组内一个分区只有一个成员；只有共享组（share group，KIP-932，Apache Kafka 4.2）允许多个成员读它。",
    ),
)
def replay(stage: Stage) -> None:
    """Two groups read the same records, and one of them reads them again."""
    topic = stage.topic()
    stage.send(topic, "a", "b", "c")
    names = {name: f"{stage.name}-{name}" for name in ("billing", "audit")}
    members = {
        name: stage.consumer(topic, group_id=group, name=name, enable_auto_commit=False)
        for name, group in names.items()
    }
    read = {
        name: [record.value.decode() for record in stage.take(member, 3)]
        for name, member in members.items()
    }
    committed = {}
    for name, member in members.items():
        committed[name] = next(iter(member.commit().values())).offset
        stage.show_group(names[name])
    members["billing"].seek_to_beginning()
    again = [record.value.decode() for record in stage.take(members["billing"], 3)]
    view = stage.show(topic)
    stage.say(
        "billing: {billing}; audit: {audit}; billing after a seek to the beginning: {again}.",
        "billing：{billing}；audit：{audit}；billing 在 seek 到开头后：{again}。",
        **read,
        again=again,
        committed=committed,
        log_after=len(view.replicas[0].records),
    )


@SUBJECT.lesson(
    "other-queues",
    question=Text(
        "What is the difference between Kafka and other message queues, like RabbitMQ or ActiveMQ?",
        "Kafka 与 RabbitMQ、ActiveMQ 等其他消息队列有什么区别？",
    ),
    explanation=Text(
        "Kafka is a log, not a queue. One topic is both models: two members of a group shared the records "
        "({shared}), as consumers of a queue do, and another group read all of them ({other_group}), as "
        "subscribers do. A consumer group acknowledges no single record: one offset for each partition is committed, "
        "here {committed}, which confirms everything before it. So a record that fails is not delivered again "
        "by the broker; the application retries it, or copies it to a retry topic. Order is kept in a "
        "partition ({ordered}). After both groups had read them, {log_after} records were still stored: retention "
        "deletes them, not reading. Kafka has no priorities and no routing by the broker; a delay is "
        "the consumer's work. It is made for throughput, replay and many readers. Share groups (KIP-932, Apache Kafka "
        "4.2) behave as queues: their records are acknowledged, and delivered again, one by one.",
        "Kafka 是日志而不是队列。一个 topic 同时是两种模型：同组的两个成员分担消息（{shared}），如同队列；另一个组读到全部（{other_group}），如同发布订阅。"
        "消费者组不确认单条消息：每个分区只提交一个 offset，这里是 {committed}，它确认了之前的所有消息。"
        "所以处理失败的消息不会由 broker 重新投递，而由应用重试或复制到重试 topic。分区内保持顺序（{ordered}）。"
        "两个组都读完后仍存有 {log_after} 条：由保留策略删除，而不是由读取删除。Kafka 没有优先级，broker 不做路由，延迟由消费者实现。"
        "它为高吞吐、重放和大量读者而设计。"
        "共享组（share group，KIP-932，Apache Kafka 4.2）补上了队列的功能：逐条确认，失败时重新投递。",
    ),
)
def other_queues(stage: Stage) -> None:
    """A group shares the records, another one reads them all, and one offset confirms many."""
    topic = stage.topic(partitions=2)
    producer = stage.producer()
    for number in range(6):
        producer.send(topic, f"r{number}", partition=number % 2).result(20)
    group = f"{stage.name}-workers"
    words = {"group_id": group, "enable_auto_commit": False}
    workers = [stage.consumer(topic, name=f"worker{n}", **words) for n in (1, 2)]
    stage.settle(workers, [1, 1])
    for worker in workers:
        # Polls during the rebalances may have returned records.
        worker.seek_to_beginning()
    shared = {f"worker{n}": _values(stage, worker, 3) for n, worker in enumerate(workers, 1)}
    committed = {str(key): row.offset for one in workers for key, row in one.commit().items()}
    stage.show_group(group)
    reader = stage.consumer(topic, name="reader", group_id=f"{stage.name}-readers")
    everything = _values(stage, reader, 6)
    views = [stage.show(topic, number) for number in range(2)]
    stage.say(
        "Two workers of one group read {shared}; another group read {other_group}.",
        "同组的两个成员读到 {shared}；另一个组读到 {other_group}。",
        shared=shared,
        other_group=sorted(everything),
        committed=dict(sorted(committed.items())),
        ordered=sorted(shared.values()),
        log_after=sum(len(view.replicas[0].records) for view in views),
    )


def _values(stage: Stage, consumer: "Consumer", count: int) -> list[str]:
    return [record.value.decode() for record in stage.take(consumer, count)]


@SUBJECT.lesson(
    "one-partition",
    question=Text(
        "Can a consumer read a certain partition from a certain offset?",
        "消费者能否消费指定分区、从指定 offset 开始？",
    ),
    explanation=Text(
        "Yes: assign instead of subscribe. The consumer read partition {partition} from offset "
        "{start}: {values}; from a point in time: {by_time}. It belongs to no group, so no rebalance "
        "takes the partition away; it has no members ({members}), and keeps its offsets itself or commits "
        "them under a group id. This was the low-level API of Kafka 0.8; today one consumer does both.",
        "可以：用 assign 代替 subscribe。消费者从分区 {partition} 的 offset {start} 读到 {values}；按时间点读到 {by_time}。"
        "它不属于任何组，不会因再均衡失去分区，也没有组成员（{members}）；offset 由自己保存或以某个组名提交。"
        "这就是 Kafka 0.8 的低级 API；如今一个消费者两者兼备。",
    ),
)
def one_partition(stage: Stage) -> None:
    """An assigned consumer reads its partition from an offset or a time, without a group."""
    topic = stage.topic(partitions=3)
    producer = stage.producer()
    begin = int(time.time() * 1000) - 60_000
    for number in range(12):
        moment = begin + number * 1000
        producer.send(topic, f"r{number}", partition=number % 3, timestamp=moment).result(20)
    stage.show(topic, 0, 1, 2)
    consumer = stage.consumer(group_id=stage.name, enable_auto_commit=False)
    key = TopicPartition(topic, 1)
    consumer.assign({key: 2})
    by_offset = stage.take(consumer, 2)
    consumer.seek_to_time(begin + 5000)
    by_time = stage.take(consumer, 2)
    group = stage.show_group(stage.name)
    stage.say(
        "Partition {partition} from offset {start}: {values}. From a point in time: {by_time}.",
        "分区 {partition} 从 offset {start} 开始：{values}。从某个时间点开始：{by_time}。",
        partition=by_offset[0].partition,
        start=by_offset[0].offset,
        values=[record.value.decode() for record in by_offset],
        by_time=[record.value.decode() for record in by_time],
        members=len(group.members),
    )


@SUBJECT.lesson(
    "pull",
    question=Text(
        "Push or pull: how do records reach a consumer, and what does an empty topic cost?",
        "推还是拉：消息如何到达消费者？没有消息时会空转吗？",
    ),
    explanation=Text(
        "Consumers pull, at their own pace: a paused consumer received {while_paused} record(s) while {sent} "
        "were stored, and then read {after_resume}. An idle consumer does not spin: the broker holds "
        "its Fetch request until fetch.min.bytes are available or fetch.max.wait.ms have passed, which is {wait_ms} ms in this "
        "lesson, and 500 ms by default. In {seconds} s without records it sent {fetches} fetch(es). Followers pull in the same way.",
        "消费者按自己的节奏拉取：暂停的消费者在存入 {sent} 条消息期间收到 {while_paused} 条，之后读到 {after_resume}。"
        "空闲的消费者不会空转：broker 会挂起 Fetch 请求，直到满足 fetch.min.bytes 或 fetch.max.wait.ms 到期（本课中为 {wait_ms} 毫秒，默认 500 毫秒）。"
        "在没有消息的 {seconds} 秒内它发送了 {fetches} 次 Fetch。follower 也以同样方式拉取。",
    ),
)
def pull(stage: Stage) -> None:
    """A paused consumer receives nothing, and an idle one sends few fetches."""
    topic = stage.topic()
    key = TopicPartition(topic, 0)
    requests = RequestCounter()
    consumer = stage.consumer(
        fetch_max_wait_ms=_WAIT_MS, stats_cb=requests, statistics_interval_ms=50
    )
    consumer.assign({key: 0})
    stage.send(topic, "first")
    stage.take(consumer, 1)
    consumer.pause()
    stage.send(topic, "a", "b", "c")
    while_paused = [*consumer.poll(0.1)]
    consumer.resume()
    after = stage.take(consumer, 3)
    before = requests["Fetch"]
    begin = time.monotonic()
    consumer.poll(0.8)
    seconds = time.monotonic() - begin
    stage.say(
        "While paused: {while_paused} records. After resume: {after_resume}. Idle for {seconds} s: "
        "{fetches} fetches.",
        "暂停期间：{while_paused} 条。恢复后：{after_resume}。空闲 {seconds} 秒：{fetches} 次 Fetch。",
        while_paused=len(while_paused),
        sent=len(after),
        after_resume=[record.value.decode() for record in after],
        seconds=round(seconds, 1),
        wait_ms=_WAIT_MS,
        fetches=requests["Fetch"] - before,
    )
