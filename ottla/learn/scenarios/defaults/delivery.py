"""Lessons about records that fail: dead letters with backpressure, and the delivery time-out."""

from ottla.base.errors import OttlaError
from ottla.client.records import TopicPartition
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.observation import log_end_offset
from ottla.learn.scenarios.defaults.kips import explained
from ottla.learn.stage import Stage

READING = Subject("reading")
PRODUCING = Subject("producing")
_TRIES = 3
_TIMEOUT_MS = 1000


@READING.lesson(
    "dead-letters",
    question=Text(
        "A consumer is slower than its topic, and one record fails each time. How does it continue, without leaving the group or losing records?",
        "消费者比 topic 慢，而且有一条消息总是失败。它如何继续，既不离开组也不丢消息？",
    ),
    explanation=explained(
        298,
        "By two means of its own. Backpressure: it pauses its partitions and polls on. The {polls} polls while it was paused returned {while_paused} record(s), and it stayed a member ({members}); "
        "the records wait in the log, not in memory. Dead letters: after {tries} tries it copied the record to another topic with "
        "its origin and the error as headers ({letter}), and committed. It processed {processed}, and the committed offset is {committed}: nothing is blocked. "
        "The order of a key is lost for the record that is set aside. Apache Kafka's broker has no dead-letter topic, and its consumer none either; the default of Kafka Connect is none "
        "(errors.tolerance=none, errors.deadletterqueue.topic.name empty), so a task stops at the first error. "
        "Without pauses a slow loop is limited by max.poll.interval.ms (5 minutes). Ottla has the same rules for consumers, and does not contain Kafka Connect.",
        "靠自己的两种手段。背压：暂停分区并继续 poll。暂停期间 {polls} 次 poll 返回 {while_paused} 条，它仍是成员（{members}）；消息留在日志里，不在内存里。"
        "死信：尝试 {tries} 次后把消息复制到另一个 topic，来源和错误放在 header 中（{letter}），然后提交。它处理了 {processed}，已提交的 offset 为 {committed}：没有被阻塞。"
        "被搁置的消息会失去该 key 的顺序。Apache Kafka 的 broker 和消费者都没有死信 topic；Kafka Connect 默认也没有（errors.tolerance=none，errors.deadletterqueue.topic.name 为空），任务在第一个错误处停止。"
        "不暂停时，慢的循环受 max.poll.interval.ms（5 分钟）限制。Ottla 的消费者规则相同，不包含 Kafka Connect。",
    ),
)
def dead_letters(stage: Stage) -> None:
    """A paused member stays in its group, and a record that fails moves to another topic."""
    topic, dead = stage.topic("orders"), stage.topic("dead")
    stage.send(topic, "1", "2")
    consumer = stage.consumer(topic, group_id=stage.name, name="c1", enable_auto_commit=False)
    processed = [int(record.value) for record in stage.take(consumer, 2)]
    consumer.pause()
    stage.send(topic, "x", "4")
    polls = 5
    while_paused = [record for _ in range(polls) for record in consumer.poll(0.05)]
    group = stage.show_group(stage.name)
    stage.say(
        "Paused: {polls} polls returned {while_paused} record(s). Members: {members}. Then it resumes; 'x' is no number.",
        "暂停：{polls} 次 poll 返回 {while_paused} 条。成员：{members}。随后恢复；'x' 不是数字。",
        polls=polls,
        while_paused=len(while_paused),
        members=list(group.members),
    )
    consumer.resume()
    producer = stage.producer(acks="all")
    tries = 0
    for record in stage.take(consumer, 2):
        for attempt in range(1, _TRIES + 1):
            try:
                processed.append(int(record.value))
                break
            except ValueError as error:
                tries = attempt
                reason = str(error)
        else:
            origin = f"{record.topic}-{record.partition} @ {record.offset}"
            headers = {"origin": origin.encode(), "error": reason.encode()}
            producer.send(dead, record.value, partition=0, headers=headers).result(20)
    committed = consumer.commit()
    (letter,) = stage.read(dead)
    stage.show(dead)
    stage.say(
        "Processed: {processed}. After {tries} tries, set aside: {letter}. Committed: {committed}.",
        "已处理：{processed}。尝试 {tries} 次后搁置：{letter}。已提交：{committed}。",
        processed=processed,
        tries=tries,
        letter={name: (value or b"").decode() for name, value in letter.headers},
        committed=committed[TopicPartition(topic, 0)].offset,
    )


@PRODUCING.lesson(
    "delivery-timeout",
    question=Text(
        "A producer reports a time-out. Is the record in the log, or is it not?",
        "生产者报告超时。消息在日志里，还是不在？",
    ),
    explanation=explained(
        91,
        "The producer does not know. It had {error} after delivery.timeout.ms ({timeout_ms} ms), and the request was in the socket of the paused leader, "
        "which stored it afterwards: {after_resume}. The program sent it again, as many do: {stored}. A time-out is no refusal. "
        "Idempotence does not help, since the second `send` is a new record; a key with compaction, or a transaction, does. delivery.timeout.ms bounds a record from `send` to its result: "
        "time in the queue, all requests and retries. Apache Kafka's defaults: delivery.timeout.ms 120 s, at least linger.ms (5 since 4.0, 0 before) + request.timeout.ms (30 s); retries is 2147483647, so only time ends them. "
        "Ottla has the same defaults; in librdkafka, which its client uses, the option has the second name message.timeout.ms, and a default of 5 minutes.",
        "生产者不知道。在 delivery.timeout.ms（{timeout_ms} 毫秒）之后它得到 {error}，而请求在暂停的 leader 的 socket 中，之后被存储：{after_resume}。"
        "程序像许多程序那样再发一次：{stored}。超时不是拒绝。幂等也没有用，因为第二次 send 是一条新消息；key 加压缩或事务才有用。"
        "delivery.timeout.ms 限制从 send 到结果的时间：排队、所有请求和重试。Apache Kafka 的默认值：delivery.timeout.ms 为 120 秒，至少为 linger.ms（4.0 起为 5，以前为 0）+ request.timeout.ms（30 秒）；retries 为 2147483647，所以只有时间能结束重试。"
        "Ottla 的默认值相同；它的客户端使用 librdkafka，该选项在那里还叫 message.timeout.ms，默认 5 分钟。",
    ),
)
def delivery_timeout(stage: Stage) -> None:
    """A record whose delivery timed out is stored all the same."""
    topic = stage.topic()
    producer = stage.producer(delivery_timeout_ms=_TIMEOUT_MS, acks=1)
    producer.send(topic, "first", partition=0).result(20)
    stage.say(
        "The leader stops for a moment. A record is sent with delivery.timeout.ms={timeout_ms}.",
        "leader 停顿片刻。用 delivery.timeout.ms={timeout_ms} 发送一条消息。",
        timeout_ms=_TIMEOUT_MS,
    )
    stage.cluster.pause(1)
    try:
        producer.send(topic, "paid", partition=0).result(20)
        error = "none"
    except (OttlaError, TimeoutError) as refused:
        error = type(refused).__name__
    finally:
        stage.cluster.resume(1)
    stage.say("The producer got {error}. The leader continues.", "生产者得到 {error}。leader 继续运行。", error=error)  # fmt: skip
    stage.until(lambda: log_end_offset(stage.cluster, 1, topic) == 2, "the record is stored")
    after = stage.values(topic)
    stage.send(topic, "paid")
    stage.show(topic)
    stage.say(
        "The log has {after_resume}, and after another `send` {stored}.",
        "日志中有 {after_resume}，再次 send 之后有 {stored}。",
        after_resume=after,
        stored=stage.values(topic),
    )
