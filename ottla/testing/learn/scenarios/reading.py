"""Lessons about consumers: reading a record again, one partition without a group, pulling."""

import time

from ottla.client.records import TopicPartition
from ottla.testing.learn.events import Text
from ottla.testing.learn.lesson import Subject
from ottla.testing.learn.observation import RequestCounter
from ottla.testing.learn.stage import Stage

SUBJECT = Subject("reading")


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
        "records by age or size, read or not ({log_after} records are still stored).",
        "读取不会删除消息：billing 组读到 {billing}，audit 组从同一分区读到 {audit}，billing 在 seek 后又读到 {again}。"
        "broker 不保存每条消息的状态，只保存每个组在每个分区的一个已提交 offset：{committed}。消息按时间或大小过期删除，与是否读过无关（仍存有 {log_after} 条）。",
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
        "its Fetch request until there are fetch.min.bytes or fetch.max.wait.ms have passed. In {seconds} s "
        "without records it sent {fetches} fetch(es). Followers pull in the same way.",
        "消费者按自己的节奏拉取：暂停的消费者在存入 {sent} 条消息期间收到 {while_paused} 条，之后读到 {after_resume}。"
        "空闲的消费者不会空转：broker 会挂起 Fetch 请求，直到满足 fetch.min.bytes 或 fetch.max.wait.ms 到期。"
        "在没有消息的 {seconds} 秒内它发送了 {fetches} 次 Fetch。follower 也以同样方式拉取。",
    ),
)
def pull(stage: Stage) -> None:
    """A paused consumer receives nothing, and an idle one sends few fetches."""
    topic = stage.topic()
    key = TopicPartition(topic, 0)
    requests = RequestCounter()
    consumer = stage.consumer(fetch_max_wait_ms=200, stats_cb=requests, statistics_interval_ms=50)
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
        fetches=requests["Fetch"] - before,
    )
