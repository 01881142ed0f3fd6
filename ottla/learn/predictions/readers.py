"""Predictions for the lessons about consumers: groups, offsets, reading."""

from collections.abc import Mapping

from ottla.learn.events import Text
from ottla.learn.predictions.prediction import Number, Prediction, choose, right, wrong

READERS: Mapping[str, Prediction | Number] = {
    "subscription": choose(
        "A topic is created whose name matches the pattern. Does the member read it?",
        "创建了名称匹配该模式的 topic。成员会读它吗？",
        wrong(
            "no, until the program restarts",
            "不会，直到程序重启",
            "A pattern is compared with each refresh of the metadata.",
            "每次刷新元数据时都会比较模式。",
        ),
        right("yes, after its next refresh of the metadata", "会，在下次刷新元数据之后"),
        wrong(
            "yes, but only records that were sent after it joined",
            "会，但只读加入之后发送的消息",
            "auto.offset.reset decides where it starts, here at the earliest record.",
            "起点由 auto.offset.reset 决定，这里从最早的消息开始。",
        ),
        after=1,
    ),
    "assignors": choose(
        "Two topics have three partitions each, and a group has two members. How many partitions do these get with range?",
        "两个 topic 各三个分区，一个组有两个成员。用 range 各得到几个分区？",
        wrong(
            "three and three",
            "三个和三个",
            "Range divides each topic by itself, and the first member gets the rest of both.",
            "range 对每个 topic 单独划分，两个 topic 的余数都给第一个成员。",
        ),
        right("four and two", "四个和两个"),
        wrong(
            "one topic each",
            "各一个 topic",
            "Range divides partitions; a member gets a range of each topic.",
            "range 划分的是分区；每个成员得到每个 topic 的一段。",
        ),
    ),
    "coordinator": choose(
        "A broker that is not the coordinator of the group dies. Does the group rebalance?",
        "不是该组协调者的 broker 宕机。组会再均衡吗？",
        wrong(
            "yes: the leaders of partitions change",
            "会：分区的 leader 变了",
            "A consumer asks for metadata and fetches from the new leader. Its partitions stay the same.",
            "消费者刷新元数据，从新 leader 拉取。它的分区不变。",
        ),
        right("no", "不会"),
        after=1,
    ),
    "when-to-commit": choose(
        "A consumer commits the offsets of two records, processes one, and crashes. What happens to the other?",
        "消费者提交了两条消息的 offset，处理了一条后崩溃。另一条会怎样？",
        right("it is lost", "丢失"),
        wrong(
            "it is processed by the next member",
            "由下一个成员处理",
            "The next member starts behind it, at the committed offset.",
            "下一个成员从已提交的 offset 开始，在它之后。",
        ),
        wrong(
            "it is processed twice",
            "处理两次",
            "That happens if the commit comes after the processing.",
            "先处理后提交才会这样。",
        ),
    ),
    "auto-commit": choose(
        "A poll has returned two records, and auto.commit.interval.ms has passed. No other poll follows. Which offset is committed?",
        "一次 poll 返回了两条消息，auto.commit.interval.ms 已过，之后没有再 poll。提交的 offset 是多少？",
        wrong(
            "2: the interval is over",
            "2：间隔已过",
            "The consumer commits in a poll. Time alone commits nothing.",
            "消费者在 poll 中提交。仅仅时间到期不会提交。",
        ),
        wrong(
            "1, of the last record",
            "1，最后一条消息的",
            "A committed offset is the next one, and nothing is committed here.",
            "提交的 offset 是下一条；而且这里什么也没有提交。",
        ),
        right("none", "没有"),
    ),
    "offset-reset": choose(
        "Which of the three groups will read 'old-0', the first record?",
        "三个组中哪个会读到第一条消息 'old-0'？",
        right("the new group with earliest", "earliest 的新组"),
        wrong(
            "both with earliest",
            "两个 earliest 的组",
            "A committed offset goes first: auto.offset.reset is not used.",
            "已提交的 offset 优先：不使用 auto.offset.reset。",
        ),
        wrong(
            "all of them",
            "全部",
            "A new group with latest starts at the end of the log.",
            "latest 的新组从日志末端开始。",
        ),
        after=1,
    ),
    "lag": Number(
        Text(
            "A topic has 40 records. The group has read 10 records, and has committed that. How large is its lag?",
            "topic 有 40 条消息。组读了 10 条并提交。积压是多少？",
        ),
        "lag",
    ),
    "replay": Number(
        Text(
            "Two groups read three records, and one of them reads them again. How many records has the log afterwards?",
            "两个组读取三条消息，其中一个又读了一遍。之后日志中有几条？",
        ),
        "log_after",
    ),
    "other-queues": Number(
        Text(
            "Two members of a group have read six records, three each. How many does a member of another group get?",
            "一个组的两个成员各读了三条，共六条。另一个组的一个成员能得到几条？",
        ),
        "other_group",
    ),
    "one-partition": Number(
        Text(
            "A consumer with a group id assigns itself a partition. How many members does the coordinator list for the group?",
            "一个带组名的消费者用 assign 指定分区。协调者列出该组有几个成员？",
        ),
        "members",
    ),
    "pull": choose(
        "A consumer polls for 0.8 s, and the topic gets no record. fetch.max.wait.ms is 200. How many Fetch requests does it send?",
        "消费者 poll 0.8 秒，topic 没有新消息。fetch.max.wait.ms 为 200。它发送多少次 Fetch？",
        wrong(
            "hundreds: it asks again at once",
            "数百次：立即再问",
            "The broker holds a request until there are records or the time is over.",
            "broker 会挂起请求，直到有消息或到时间。",
        ),
        right("a few", "几次"),
        wrong(
            "none: the broker sends records by itself",
            "零次：broker 会主动发送",
            "Brokers send records in responses only.",
            "broker 只在响应中发送消息。",
        ),
    ),
}
"""The prediction of each of these lessons."""
