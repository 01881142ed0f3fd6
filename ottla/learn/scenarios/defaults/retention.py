"""Lessons about the end of records: compaction with tombstones, and retention."""

import time
from collections.abc import Callable
from contextlib import suppress

from ottla.client.admin.configs import Resource, ResourceType, alter_config
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.scenarios.defaults.kips import explained
from ottla.learn.stage import Stage

SUBJECT = Subject("storage")
_HOUR_MS = 3_600_000
_SEGMENT_MS = 5000
_TOMBSTONE_MS = 500


@SUBJECT.lesson(
    "compaction",
    log_cleaner_enable="true",
    log_cleaner_backoff_ms="50",
    question=Text(
        "cleanup.policy=compact: which records are kept, and how is a key deleted?",
        "cleanup.policy=compact：保留哪些消息？如何删除一个 key？",
    ),
    explanation=explained(
        534,
        "The newest record of each key, with its offset. After {before} the log had {compacted}: the older records of "
        "the full segment were gone. The newest segment is never compacted, so anna had two records. A record without a value "
        "(a tombstone) deletes its key. It stays for delete.retention.ms, so that a reader which is behind sees "
        "the deletion, and is removed by a later pass: {end}. Apache Kafka's defaults: cleanup.policy=delete, "
        "delete.retention.ms 24 hours ({tombstone_ms} ms here), segment.ms 7 days, min.cleanable.dirty.ratio 0.5: a compacted "
        "topic has duplicates most of the time. Ottla has the same defaults and rules.",
        "每个 key 最新的一条，offset 不变。写入 {before} 之后，日志中有 {compacted}：已写满的段中较旧的消息消失了。最新的段从不压缩，所以 anna 有两条。"
        "没有值的消息（墓碑）删除它的 key。墓碑保留 delete.retention.ms，让落后的读者看到删除，之后的一次压缩才移除它：{end}。"
        "Apache Kafka 的默认值：cleanup.policy=delete，delete.retention.ms 为 24 小时（这里 {tombstone_ms} 毫秒），segment.ms 为 7 天，min.cleanable.dirty.ratio 为 0.5："
        "压缩的 topic 大部分时间都有重复。Ottla 的默认值和规则相同。",
    ),
)
def compaction(stage: Stage) -> None:
    """The cleaner keeps the newest record of a key, and a tombstone for some time."""
    topic = stage.topic(
        cleanup_policy="compact",
        segment_ms=str(_SEGMENT_MS),
        min_cleanable_dirty_ratio="0.01",
        delete_retention_ms=str(_TOMBSTONE_MS),
    )
    now = int(time.time() * 1000)
    producer = stage.producer()

    def send(key: str, value: str | None, moment: int) -> None:
        producer.send(topic, value, key=key, partition=0, timestamp=moment).result(20)

    rows = [("anna", "1"), ("eva", "1"), ("anna", "2"), ("gina", "1"), ("eva", None)]
    for key, value in rows:
        send(key, value, now - 2 * _SEGMENT_MS)
    stage.show(topic)
    stage.say(
        "Sent: {before}. The last one has no value. The next record begins a segment.",
        "已发送：{before}。最后一条没有值。下一条消息开始一个新段。",
        before=[
            _pair(key.encode(), None if value is None else value.encode()) for key, value in rows
        ],
        tombstone_ms=_TOMBSTONE_MS,
    )
    send("anna", "3", now)
    compacted = _wait(stage, topic, lambda pairs: len(pairs) <= 4)
    cleaned_at = time.monotonic()
    stage.say("After a pass of the cleaner: {compacted}.", "一次压缩之后：{compacted}。", compacted=compacted)  # fmt: skip
    stage.until(
        lambda: time.monotonic() > cleaned_at + 2 * _TOMBSTONE_MS / 1000,
        "delete.retention.ms is over",
    )
    send("anna", "4", now + 2 * _SEGMENT_MS)
    end = _wait(stage, topic, lambda pairs: _pair(b"eva", None) not in pairs)
    stage.show(topic)
    stage.say("After delete.retention.ms, and another pass: {end}.", "delete.retention.ms 之后再压缩一次：{end}。", end=end)  # fmt: skip


def _wait(stage: Stage, topic: str, is_clean: Callable[[list[str]], bool]) -> list[str]:
    """Read the topic until the cleaner has passed, and return what is left."""

    def has_passed() -> bool:
        # A file may be replaced between its name and its content.
        with suppress(FileNotFoundError):
            return is_clean(
                [
                    _pair(row.key, row.value)
                    for row in observation.raw_records(stage.cluster, 1, topic)
                ]
            )
        return False

    stage.until(has_passed, "the cleaner has passed")
    return [_pair(record.key, record.value) for record in stage.read(topic)]


def _pair(key: bytes | None, value: bytes | None) -> str:
    """Return a record as a text; ∅ is a record without a value."""
    return f"{(key or b'').decode()}={'∅' if value is None else value.decode()}"


@SUBJECT.lesson(
    "retention",
    log_initial_task_delay_ms="0",
    log_retention_check_interval_ms="100",
    question=Text(
        "retention.ms is one hour. Is a record of two hours ago deleted? What does a consumer do that wanted it?",
        "retention.ms 为一小时。两小时前的消息会被删除吗？想读它的消费者会怎样？",
    ),
    explanation=explained(
        33,
        "Not necessarily: retention deletes whole segments, whose newest record is older than retention.ms. "
        "The ages of the records were {ages} minutes. Left were the records of {kept} minutes: a record of {oldest} minutes shared its segment with a "
        "younger one. The log began at offset {start} then. The group had committed offset {committed}, which did not exist any "
        "more, so auto.offset.reset decided: it read from offset {resumed}. No reader protects a record. Apache Kafka's defaults: log.retention.hours 168 "
        "(7 days), retention.bytes -1 (no limit), a check every 5 minutes (log.retention.check.interval.ms), files deleted 60 s later. "
        "Ottla has the same defaults.",
        "不一定：过期删除以整个段为单位，段中最新的消息超过 retention.ms 才删除。消息的年龄为 {ages} 分钟，留下的为 {kept} 分钟：一条 {oldest} 分钟的消息与较新的消息在同一段。"
        "此后日志从 offset {start} 开始。组已提交的 offset {committed} 不再存在，于是由 auto.offset.reset 决定：从 offset {resumed} 读起。没有读者能保护消息。"
        "Apache Kafka 的默认值：log.retention.hours 为 168（7 天），retention.bytes 为 -1（不限），每 5 分钟检查一次（log.retention.check.interval.ms），60 秒后删除文件。Ottla 的默认值相同。",
    ),
)
def retention(stage: Stage) -> None:
    """A segment is deleted when its newest record has expired; a group behind it is reset."""
    topic = stage.topic(retention_ms="-1", segment_ms=str(2 * _HOUR_MS))
    now = int(time.time() * 1000)
    ages = [300, 240, 120, 10]
    producer = stage.producer()
    for age in ages:
        moment = now - age * _HOUR_MS // 60
        producer.send(topic, f"{age} min", partition=0, timestamp=moment).result(20)
    key = (topic, 0)
    member = stage.consumer(group_id=stage.name, enable_auto_commit=False)
    member.assign([key])
    member.commit({key: 1})
    member.close()
    stage.show(topic)
    stage.say(
        "Ages in minutes: {ages}. A group has committed offset {committed}. Now retention.ms becomes one hour.",
        "年龄（分钟）：{ages}。一个组已提交 offset {committed}。现在 retention.ms 改为一小时。",
        ages=ages,
        committed=1,
    )
    with stage.cluster.admin() as brokers:
        alter_config(brokers, Resource(ResourceType.TOPIC, topic), {"retention.ms": str(_HOUR_MS)})
    log = stage.cluster.node(1).broker.replicas.get(topic, 0).log
    stage.until(lambda: log.log_start_offset > 0, "a segment is deleted")
    again = stage.consumer(topic, group_id=stage.name, enable_auto_commit=False)
    (first, *rest) = stage.take(again, 2)
    kept = [int(record.value.decode().partition(" ")[0]) for record in (first, *rest)]
    stage.show(topic)
    stage.say(
        "The log begins at offset {start}. The group continues at {resumed}; ages: {kept}.",
        "日志从 offset {start} 开始。组从 {resumed} 继续；年龄：{kept}。",
        start=int(log.log_start_offset),
        resumed=first.offset,
        kept=kept,
        oldest=max(kept),
    )
