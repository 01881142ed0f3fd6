"""Predictions for the lessons that most readers take first."""

from collections.abc import Mapping

from ottla.learn.events import Text
from ottla.learn.predictions.prediction import Choice, Number, Prediction

BASICS: Mapping[str, Prediction | Number] = {
    "acks-1": Prediction(
        Text(
            "The record is acknowledged, no follower has it, and the leader dies. What will its log hold when the old leader is back?",
            "消息已确认，但没有 follower 拥有它，leader 宕机。旧 leader 恢复后，日志里还有这条消息吗？",
        ),
        (
            Choice(
                Text("still the record: it was acknowledged", "有：它已经被确认"),
                Text(
                    "acks=1 promises one copy. The new leader did not have it, and its log decides.",
                    "acks=1 只承诺一个副本。新 leader 没有它，以新 leader 的日志为准。",
                ),
            ),
            Choice(
                Text("the record of the new leader in its place", "没有：该位置是新 leader 的消息")
            ),
            Choice(
                Text("both records", "两条都有"),
                Text(
                    "An offset has one record. A replica truncates its log to where it agrees with the leader's.",
                    "一个 offset 只有一条消息。副本会把日志截断到与 leader 一致的位置。",
                ),
            ),
        ),
        after=2,
    ),
    "acks-all": Prediction(
        Text(
            "min.insync.replicas is 2, and one replica is left in the ISR. What does a producer with acks=all get?",
            "min.insync.replicas 为 2，ISR 只剩一个副本。acks=all 的生产者会得到什么？",
        ),
        (
            Choice(
                Text(
                    "an acknowledgement: all replicas in the ISR have it",
                    "确认：ISR 中的所有副本都有了",
                ),
                Text(
                    "That is so with min.insync.replicas=1, the default: acks=all alone may mean one copy.",
                    "min.insync.replicas=1（默认）时如此：只有 acks=all 可能意味着一个副本。",
                ),
            ),
            Choice(Text("an error, and nothing is appended", "错误，什么也没有追加")),
            Choice(
                Text("it waits until a follower is back", "一直等到 follower 恢复"),
                Text(
                    "The leader refuses at once; the producer retries until delivery.timeout.ms.",
                    "leader 立即拒绝；生产者会重试到 delivery.timeout.ms。",
                ),
            ),
        ),
        after=2,
    ),
    "high-watermark": Number(
        Text(
            "The log ends at offset 1, and the followers are cut off. A record is written with acks=1. Where is the high watermark then?",
            "日志末端为 1，follower 已断开。用 acks=1 写入一条消息后，高水位是多少？",
        ),
        "hw_cut",
        after=1,
    ),
    "isr": Prediction(
        Text(
            "The broker starts again. Who brings it back into the ISR?",
            "broker 重新启动。谁让它回到 ISR？",
        ),
        (
            Choice(
                Text("an operator, with a command", "运维人员用命令"),
                Text(
                    "No command changes an ISR; older texts claim that.",
                    "没有修改 ISR 的命令；这是旧资料的说法。",
                ),
            ),
            Choice(
                Text("itself, by fetching until it has caught up", "它自己：拉取直到追上 leader")
            ),
            Choice(
                Text("the next election", "下一次选举"),
                Text(
                    "Elections choose among the members of the ISR; they add none.",
                    "选举在 ISR 成员中进行，不会增加成员。",
                ),
            ),
        ),
        after=2,
    ),
    "unclean-election": Prediction(
        Text(
            "The only replica in the ISR has died, and an older one is alive. Who leads?",
            "ISR 中唯一的副本宕机，一个落后的副本还活着。谁是 leader？",
        ),
        (
            Choice(
                Text("the older replica, at once", "立即由落后的副本担任"),
                Text(
                    "It lacks an acknowledged record: by default consistency has precedence.",
                    "它缺少已确认的消息：默认一致性优先。",
                ),
            ),
            Choice(Text("no replica, until one of the ISR is back", "没有，直到 ISR 成员恢复")),
        ),
        after=1,
    ),
    "slow-replica": Prediction(
        Text(
            "A follower has been 4500 records behind for a moment. Is it in the ISR?",
            "一个 follower 刚刚落后 4500 条。它还在 ISR 中吗？",
        ),
        (
            Choice(
                Text("no: it is too far behind", "不在：落后太多"),
                Text(
                    "replica.lag.max.messages was removed in 0.9: a burst made healthy followers leave.",
                    "replica.lag.max.messages 在 0.9 中移除：突发写入会让健康的 follower 离开。",
                ),
            ),
            Choice(
                Text(
                    "yes, until replica.lag.time.max.ms is over", "在，直到 replica.lag.time.max.ms"
                )
            ),
        ),
    ),
    "order": Prediction(
        Text(
            "Nine records of three keys are sent to three partitions. In which order does a consumer read them?",
            "三个 key 的九条消息发到三个分区。消费者按什么顺序读到？",
        ),
        (
            Choice(
                Text("as they were sent", "按发送顺序"),
                Text(
                    "Only the records of one partition are in order; partitions are read independently.",
                    "只有同一分区内有序；各分区独立读取。",
                ),
            ),
            Choice(Text("in order for each key, not across keys", "每个 key 有序，key 之间无序")),
            Choice(
                Text("in any order", "任意顺序"),
                Text(
                    "A key has one partition, and a partition is a log.",
                    "一个 key 只在一个分区，分区就是日志。",
                ),
            ),
        ),
    ),
    "partitioner": Prediction(
        Text(
            "Twenty records without a key are sent in one batch to a topic with three partitions. How many partitions get some?",
            "二十条没有 key 的消息作为一个批次发到三分区的 topic。多少个分区会收到？",
        ),
        (
            Choice(Text("one", "一个")),
            Choice(
                Text("three, by turns", "三个，轮流"),
                Text(
                    "That was round robin, before KIP-480: many small batches.",
                    "那是 KIP-480 之前的轮询：批次又多又小。",
                ),
            ),
            Choice(
                Text("it is random for each record", "每条随机"),
                Text(
                    "The partition is chosen for a batch, which makes it large.",
                    "分区按批次选择，批次因此更大。",
                ),
            ),
        ),
    ),
    "retries": Prediction(
        Text(
            "A response comes too late, and the producer sends the record again. How often is it in the log with enable.idempotence=true?",
            "响应来得太晚，生产者重发消息。enable.idempotence=true 时日志里有几条？",
        ),
        (
            Choice(Text("once", "一条")),
            Choice(
                Text("twice", "两条"),
                Text(
                    "Without idempotence. With it the batch has a sequence number, which the leader knows.",
                    "不幂等时如此。幂等时批次带有序号，leader 能识别。",
                ),
            ),
        ),
    ),
    "rebalance": Number(
        Text(
            "Two members own three partitions, and one of them leaves. How many partitions will the other one own?",
            "两个成员拥有三个分区，其中一个离开。另一个将拥有几个分区？",
        ),
        "after_c1",
        after=1,
    ),
    "idle-consumer": Prediction(
        Text(
            "A group has three consumers, and the topic has two partitions. What does the third one do?",
            "一个组有三个消费者，topic 有两个分区。第三个做什么？",
        ),
        (
            Choice(
                Text("it shares a partition with another one", "与另一个共享一个分区"),
                Text(
                    "A partition has one owner in a group: otherwise order would be lost.",
                    "组内一个分区只有一个拥有者，否则会失去顺序。",
                ),
            ),
            Choice(Text("nothing, until a member leaves", "什么也不做，直到有成员离开")),
            Choice(
                Text("it is refused", "被拒绝"),
                Text("It is a member, as a spare.", "它是成员，作为备用。"),
            ),
        ),
    ),
    "committed-offset": Number(
        Text(
            "A consumer reads the records with offsets 0, 1 and 2, and commits. Which offset is committed?",
            "消费者读取 offset 0、1、2 的消息并提交。提交的 offset 是多少？",
        ),
        "committed",
    ),
    "transaction": Prediction(
        Text(
            "One transaction was aborted, another is open. What does a read_committed consumer see?",
            "一个事务已中止，另一个未结束。read_committed 消费者能看到什么？",
        ),
        (
            Choice(
                Text("the records of the open one", "未结束事务的消息"),
                Text("It may still be aborted.", "它仍可能被中止。"),
            ),
            Choice(Text("nothing", "什么也看不到")),
            Choice(
                Text("all of them", "全部"),
                Text(
                    "That is read_uncommitted, the default of consumers.",
                    "那是 read_uncommitted，消费者的默认值。",
                ),
            ),
        ),
    ),
    "grow-partitions": Prediction(
        Text(
            "A topic grows from two partitions to four. What happens to the records with a key?",
            "topic 从两个分区增加到四个。带 key 的消息会怎样？",
        ),
        (
            Choice(
                Text("they move to the new partitions", "移到新的分区"),
                Text("A log is never rewritten by key.", "日志不会按 key 重写。"),
            ),
            Choice(
                Text(
                    "they stay, and new records of some keys go elsewhere",
                    "原地不动，部分 key 的新消息去别的分区",
                )
            ),
            Choice(
                Text("each key keeps its partition", "每个 key 保持原分区"),
                Text(
                    "The partition is the hash modulo the number of partitions, which has changed.",
                    "分区是哈希对分区数取模，而分区数变了。",
                ),
            ),
        ),
    ),
}
"""The prediction of each of these lessons."""
