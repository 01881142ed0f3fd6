"""Predictions for the lessons about producers and transactions."""

from collections.abc import Mapping

from ottla.learn.events import Text
from ottla.learn.predictions.prediction import Number, Prediction, choose, right, wrong

PRODUCERS: Mapping[str, Prediction | Number] = {
    "send-path": choose(
        "In which order does a record pass these three?",
        "一条消息按什么顺序经过这三者？",
        wrong(
            "serializer, partitioner, interceptor",
            "序列化器、分区器、拦截器",
            "The interceptor gets the record of the caller, which it may replace.",
            "拦截器得到的是调用者的消息，并且可以替换它。",
        ),
        right("interceptor, serializer, partitioner", "拦截器、序列化器、分区器"),
        wrong(
            "interceptor, partitioner, serializer",
            "拦截器、分区器、序列化器",
            "The partitioner hashes the bytes of the key, so these must exist.",
            "分区器对 key 的字节做哈希，所以必须先序列化。",
        ),
    ),
    "batches": choose(
        "500 records are sent with linger.ms=50. How many batches has the log?",
        "用 linger.ms=50 发送 500 条消息。日志中有多少个批次？",
        wrong(
            "500 batches",
            "500 个",
            "The producer waits up to linger.ms for records that can share a batch.",
            "生产者最多等待 linger.ms，让消息共用一个批次。",
        ),
        right("fewer than 20", "少于 20 个"),
        wrong(
            "one for each key",
            "每个 key 一个",
            "A batch belongs to a partition, and has records of many keys.",
            "批次属于分区，可以包含许多 key 的消息。",
        ),
    ),
    "acks-2": choose(
        "A request with acks=2 reaches the leader of a partition. What happens?",
        "一个 acks=2 的请求到达分区的 leader。会怎样？",
        wrong(
            "two replicas acknowledge it",
            "两个副本确认",
            "That was so in 0.8. Today min.insync.replicas=2 with acks=all has this meaning.",
            "0.8 如此。如今用 min.insync.replicas=2 加 acks=all 表达。",
        ),
        wrong(
            "it counts as acks=all",
            "按 acks=all 处理",
            "Only -1 means all.",
            "只有 -1 表示 all。",
        ),
        right("it is refused", "被拒绝"),
    ),
    "acks-1-duplicates": choose(
        "The response comes later than the producer waits. How often will 'pay 10 €' be in the log?",
        "响应来得比生产者的等待时间晚。日志中会有几条 'pay 10 €'？",
        wrong(
            "never: the request has failed",
            "没有：请求失败了",
            "It has not failed: the leader stores it after its pause. Only the response is late.",
            "请求没有失败：leader 停顿之后存储了它，只是响应晚了。",
        ),
        wrong(
            "once: the leader knows the record",
            "一条：leader 认得这条消息",
            "Without a producer id and a sequence number it cannot know it.",
            "没有 producer id 和序号，leader 无法识别。",
        ),
        right("more than once", "不止一条"),
        after=1,
    ),
    "in-flight": choose(
        "A and B have sequence numbers now. A is rejected, and B arrives. What does the leader do with B?",
        "现在 A 和 B 带有序号。A 被拒绝，B 到达。leader 如何处理 B？",
        wrong(
            "it appends B",
            "追加 B",
            "That is the case without idempotence, which has just been shown.",
            "那是不幂等的情形，刚才已经看到。",
        ),
        wrong(
            "it keeps B in memory until A comes",
            "把 B 放在内存中等待 A",
            "A broker keeps no batch back: the producer repeats both.",
            "broker 不会暂存批次：生产者重发两者。",
        ),
        right("it refuses B", "拒绝 B"),
        after=1,
    ),
    "unsent-records": Number(
        Text(
            "`send` returned eight times: three records were acknowledged, five wait for their batch. How many are in the log of the topic?",
            "send 返回了八次：三条已确认，五条在等待批次。topic 的日志中有几条？",
        ),
        "stored",
        after=1,
    ),
    "load-test": choose(
        "What costs a producer the most records per second?",
        "什么最影响生产者每秒的条数？",
        wrong(
            "acks=all instead of acks=1",
            "用 acks=all 代替 acks=1",
            "It makes each acknowledgement later. A producer that does not wait sends on.",
            "每次确认更晚，但不等待的生产者会继续发送。",
        ),
        right("waiting for each record", "逐条等待"),
        wrong(
            "waiting 5 ms for a batch (linger.ms=5)",
            "为批次等待 5 毫秒（linger.ms=5）",
            "It delays the first record of a batch, and makes batches larger. Apache Kafka 4 has it as the default (KIP-1030).",
            "它推迟批次的第一条消息，但使批次更大。Apache Kafka 4 以它为默认值（KIP-1030）。",
        ),
    ),
    "fencing": choose(
        "The second producer has started with the same transactional id. Which one may commit?",
        "第二个生产者用同一个 transactional id 启动。谁可以提交？",
        wrong(
            "the first: its transaction is open",
            "第一个：它的事务未结束",
            "The coordinator aborts it when the second one registers.",
            "第二个注册时，协调者会回滚它。",
        ),
        right("the second", "第二个"),
        wrong(
            "both",
            "两个都可以",
            "Then a program that was believed dead could write its output twice.",
            "那样被误认为已死的程序可能会把输出写两次。",
        ),
        after=1,
    ),
    "exactly-once": choose(
        "The program runs again after the crash. How often is output A in the log, and how often does read_committed see it?",
        "崩溃后程序再次运行。输出 A 在日志中有几条？read_committed 看到几条？",
        wrong(
            "once, and once",
            "一条，一条",
            "The first one was written at once; an abort removes nothing from the log.",
            "第一条已立即写入；回滚不会从日志中删除任何内容。",
        ),
        right("twice, and once", "两条，一条"),
        wrong(
            "twice, and twice",
            "两条，两条",
            "The first one belongs to an aborted transaction, which read_committed skips.",
            "第一条属于已回滚的事务，read_committed 会跳过。",
        ),
        after=1,
    ),
}
"""The prediction of each of these lessons."""
