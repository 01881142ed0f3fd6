"""Lessons about transactions: all or nothing, fencing, and exactly once from topic to topic."""

from contextlib import suppress

from ottla.client.errors import Fenced
from ottla.client.records import TopicPartition
from ottla.learn.events import NONE, Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage

SUBJECT = Subject("transactions")


class _Crash(Exception):
    """The application fails in the middle of a transaction."""


@SUBJECT.lesson(
    "transaction",
    question=Text(
        "What do consumers see of a transaction that is open, aborted or committed?",
        "消费者能看到未提交、已回滚、已提交的事务中的哪些消息？",
    ),
    explanation=Text(
        "The records are in the log at once, whatever becomes of them: {log}. A consumer with "
        "isolation.level=read_committed read {committed_open} while the transaction was open (it stops "
        "at the last stable offset), and {committed_end} at the end: aborted records are skipped. "
        "read_uncommitted, the default, read {uncommitted}. Markers take offsets, so offsets have gaps: "
        "{offsets}.",
        "消息会立即写入日志，无论结果如何：{log}。isolation.level=read_committed 的消费者在事务未结束时读到：{committed_open}"
        "（停在最后稳定 offset），结束后读到 {committed_end}：跳过已回滚的消息。默认的 read_uncommitted 读到 {uncommitted}。"
        "事务标记（marker）占用 offset，因此 offset 不连续：{offsets}。",
    ),
)
def transaction(stage: Stage) -> None:
    """Aborted records stay in the log, and read_committed skips them."""
    topic = stage.topic()
    producer = stage.producer(transactional_id=stage.name, enable_idempotence=True)
    with suppress(_Crash), producer.transaction():
        producer.send(topic, "aborted", partition=0).result(20)
        raise _Crash
    producer.begin_transaction()
    producer.send(topic, "committed", partition=0).result(20)
    stage.show(topic)
    stage.say(
        "One transaction was aborted, one is open. read_committed: {committed_open}; "
        "read_uncommitted: {uncommitted}.",
        "一个事务已回滚，一个未提交。read_committed：{committed_open}；read_uncommitted：{uncommitted}。",
        committed_open=stage.values(topic, isolation_level="read_committed"),
        uncommitted=stage.values(topic),
    )
    producer.commit_transaction()
    view = stage.show(topic)
    records = stage.read(topic, isolation_level="read_committed")
    stage.say(
        "The second one is committed. read_committed: {committed_end}.",
        "第二个事务已提交。read_committed：{committed_end}。",
        committed_end=[record.value.decode() for record in records],
        offsets=[record.offset for record in records],
        log=[slot.value for slot in view.replicas[0].records],
    )


@SUBJECT.lesson(
    "fencing",
    question=Text(
        "Two producers use the same transactional id. Which one may write?",
        "两个生产者使用同一个 transactional id，谁可以写入？",
    ),
    explanation=Text(
        "The newer one. A transactional id belongs to one producer id with an epoch; it does not replace "
        "it. When the second producer registered, the coordinator raised the epoch and aborted what the "
        "first had left open. The first, a zombie, got {error}. Consumers with read_committed read "
        "{values}.",
        "较新的那个。transactional id 对应一个 producer id 和 epoch，而不是取代它。第二个生产者注册时，协调者增大 epoch，"
        "并回滚第一个未完成的事务。第一个（僵尸）得到 {error}。read_committed 的消费者读到 {values}。",
    ),
)
def fencing(stage: Stage) -> None:
    """The older producer is fenced, and its open transaction aborted."""
    topic = stage.topic()
    settings = {"transactional_id": stage.name, "enable_idempotence": True}
    old = stage.producer(**settings)
    old.begin_transaction()
    old.send(topic, "zombie", partition=0).result(20)
    stage.show(topic)
    stage.say(
        "The first producer has an open transaction. The second one starts with the same id.",
        "第一个生产者有一个未提交的事务。第二个用同一个 id 启动。",
    )
    new = stage.producer(**settings)
    with new.transaction():
        new.send(topic, "new", partition=0)
    try:
        old.commit_transaction()
        error = "none"
    except Fenced as refused:
        error = type(refused).__name__
    with suppress(Fenced):
        old.close()
    stage.show(topic)
    stage.say(
        "The first producer commits: {error}. read_committed: {values}.",
        "第一个生产者提交：{error}。read_committed：{values}。",
        error=error,
        values=stage.values(topic, isolation_level="read_committed"),
    )


@SUBJECT.lesson(
    "exactly-once",
    question=Text(
        "How does a program that reads, processes and writes process each record exactly once?",
        "“读取-处理-写入”的程序如何做到精确一次？",
    ),
    explanation=Text(
        "It commits its input offsets in the same transaction as its output. After the crash the "
        "committed offset was {committed_crash}, so the record was read again; but its first output "
        "belonged to an aborted transaction. Output in the log: {log}; output that read_committed sees: "
        "{output}. Other systems need the same: results and offsets in one database transaction.",
        "把输入 offset 与输出放在同一个事务中提交。崩溃后已提交的 offset：{committed_crash}，因此消息被再次读取；但它的第一次输出属于已回滚的事务。"
        "日志中的输出：{log}；read_committed 看到的输出：{output}。其他系统同理：结果与 offset 放在一个数据库事务中。",
    ),
)
def exactly_once(stage: Stage) -> None:
    """A crash between output and offsets leaves one visible output for each record."""
    source = stage.topic("in")
    target = stage.topic("out")
    stage.send(source, "a", "b")
    group = stage.name
    key = TopicPartition(source, 0)

    def copy(*, crashes: bool) -> None:
        producer = stage.producer(transactional_id=stage.name, enable_idempotence=True)
        consumer = stage.consumer(source, group_id=group, enable_auto_commit=False)
        records = stage.take(consumer, 2)
        with producer.transaction():
            for record in records:
                producer.send(target, record.value.decode().upper(), partition=0).result(20)
            if crashes:
                raise _Crash
            producer.send_offsets(consumer)
        consumer.close()

    try:
        copy(crashes=True)
    except _Crash:
        stage.evict(group)
    watcher = stage.consumer(group_id=group)
    committed = watcher.committed([key])
    stage.show(target)
    stage.say(
        "The program crashed after its output, before its offsets. Committed offsets: {committed_crash}.",
        "程序在输出之后、提交 offset 之前崩溃。已提交 offset：{committed_crash}。",
        committed_crash={str(row): value.offset for row, value in committed.items()} or NONE,
    )
    copy(crashes=False)
    view = stage.show(target)
    stage.say(
        "It ran again. Visible output: {output}. Committed offset: {committed_end}.",
        "它再次运行。可见输出：{output}。已提交 offset：{committed_end}。",
        output=stage.values(target, isolation_level="read_committed"),
        log=[slot.value for slot in view.replicas[0].records],
        committed_end=watcher.committed([key])[key].offset,
    )
