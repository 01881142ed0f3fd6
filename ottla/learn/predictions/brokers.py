"""Predictions for the lessons about brokers: parts of a cluster, controller, replicas, storage."""

from collections.abc import Mapping

from ottla.learn.events import Text
from ottla.learn.predictions.prediction import Number, Prediction, choose, right, wrong

BROKERS: Mapping[str, Prediction | Number] = {
    "architecture": choose(
        "The leader of a partition dies. Who names the next leader?",
        "分区的 leader 宕机。谁指定下一个 leader？",
        wrong(
            "its followers, by a vote",
            "它的 follower 投票",
            "Replicas of a partition do not vote. Only KRaft's controllers do, about the controller.",
            "分区的副本不投票。只有 KRaft 的 controller 之间投票，选的是 controller。",
        ),
        right("the controller", "controller"),
        wrong(
            "the producer, when it sends the next record",
            "生产者，在发送下一条消息时",
            "Clients learn the leader from metadata; they choose partitions, not leaders.",
            "客户端从元数据得知 leader；它们选择分区，不选择 leader。",
        ),
        after=1,
    ),
    "internal-topics": Number(
        Text(
            "A producer commits one transaction, and a group commits one offset. How many internal topics has the cluster then?",
            "一个生产者提交了一次事务，一个组提交了一个 offset。此时集群有几个内部 topic？",
        ),
        "internal",
    ),
    "names": choose(
        "A program passes enable.idompotence to this producer. What happens?",
        "程序把 enable.idompotence 传给这个生产者。会怎样？",
        wrong(
            "the option is ignored, and the log mentions it",
            "选项被忽略，日志中提到它",
            "That is Java's client. The producer would then run without the option that was meant.",
            "那是 Java 客户端的做法。生产者于是在没有该选项的情况下运行。",
        ),
        right("it is refused", "被拒绝"),
        wrong(
            "it is corrected to enable.idempotence",
            "被更正为 enable.idempotence",
            "The error suggests the name, but no client guesses an option.",
            "错误信息会建议正确的名字，但没有客户端会猜测选项。",
        ),
        after=1,
    ),
    "acks-0": choose(
        "A record is larger than the topic allows. It is sent with acks=0. What does the producer see?",
        "一条消息超过 topic 的大小限制，用 acks=0 发送。生产者看到什么？",
        wrong(
            "the error MESSAGE_TOO_LARGE",
            "错误 MESSAGE_TOO_LARGE",
            "The error would be in a response, and acks=0 has no response. acks=1 shows it.",
            "错误在响应里，而 acks=0 没有响应。acks=1 时能看到。",
        ),
        wrong(
            "a time-out",
            "超时",
            "The producer does not wait for a response, so nothing can be late.",
            "生产者不等待响应，所以不会超时。",
        ),
        right("a success, without an offset", "成功，但没有 offset"),
    ),
    "truncation": choose(
        "The high watermark on the disk of the former leader is behind 'doomed'. The new leader has another record at that offset. Which records will the former leader have?",
        "旧 leader 磁盘上的高水位在 'doomed' 之后。新 leader 在该 offset 有另一条消息。旧 leader 最后有哪些消息？",
        wrong(
            "'doomed' as well: it was below the high watermark",
            "仍有 'doomed'：它低于高水位",
            "That was the rule before 0.11 (KIP-101): the replicas would differ for ever.",
            "那是 0.11（KIP-101）之前的规则：副本会永远不同。",
        ),
        right("the records of the new leader", "与新 leader 相同"),
        wrong(
            "none: it copies the whole log again",
            "没有：重新复制整个日志",
            "It keeps the records of the epochs on which both logs agree.",
            "两份日志一致的 epoch 中的消息会保留。",
        ),
        after=2,
    ),
    "controller-duties": choose(
        "The leader of the partition dies, and returns. auto.leader.rebalance.enable is false here. Does it lead again?",
        "分区的 leader 宕机后恢复。这里 auto.leader.rebalance.enable 为 false。它会再次成为 leader 吗？",
        wrong(
            "yes, as soon as it is in the ISR",
            "会，一回到 ISR 就是",
            "A return to the ISR changes no leader.",
            "回到 ISR 不会改变 leader。",
        ),
        right("only after a preferred election", "只有在 preferred 选举之后"),
        wrong(
            "yes, when the other leader has led for as long",
            "会，当另一个 leader 担任同样长的时间之后",
            "Leaders have no terms. Apache Kafka's default is a check each 5 minutes (leader.imbalance.check.interval.seconds), which makes preferred elections.",
            "leader 没有任期。Apache Kafka 默认每 5 分钟检查一次（leader.imbalance.check.interval.seconds），并执行 preferred 选举。",
        ),
        after=1,
    ),
    "controller": choose(
        "The dead broker led a partition. Which of the other replicas in the ISR leads it next?",
        "宕机的 broker 是某分区的 leader。ISR 中其余哪个副本接任？",
        wrong(
            "the one whose broker leads the fewest partitions",
            "其 broker 担任 leader 最少的那个",
            "The load is no criterion at an election.",
            "选举不看负载。",
        ),
        wrong(
            "the one with the longest log",
            "日志最长的那个",
            "Each replica in the ISR has every committed record, so the length does not matter.",
            "ISR 中的每个副本都有全部已提交的消息，长度无关。",
        ),
        right("the first live one of the assignment", "分配顺序中第一个存活的"),
        after=1,
    ),
    "create-topic": choose(
        "A topic with 3 partitions and replication factor 2 is created on three brokers. How many folders appear?",
        "在三个 broker 上创建 3 分区、副本因子 2 的 topic。会出现多少个目录？",
        wrong(
            "one, with the name of the topic",
            "一个，以 topic 命名",
            "Older texts say so. A folder belongs to one replica, and is called <topic>-<partition>.",
            "旧资料这样说。一个目录属于一个副本，名为 <topic>-<分区>。",
        ),
        wrong(
            "three, one for each partition",
            "三个，每个分区一个",
            "Each replica has its own log on its own broker.",
            "每个副本在自己的 broker 上有自己的日志。",
        ),
        right("six, one for each replica", "六个，每个副本一个"),
        after=1,
    ),
    "direct-to-leader": choose(
        "A client sends a request for the leader to a follower. What does the follower do?",
        "客户端把给 leader 的请求发给 follower。follower 怎么做？",
        wrong(
            "it forwards the request to the leader",
            "转发给 leader",
            "Brokers forward some requests to the controller, but none of records or offsets to a leader.",
            "broker 会把某些请求转发给 controller，但不会把消息或 offset 的请求转发给 leader。",
        ),
        wrong(
            "it responds from its own log",
            "用自己的日志回答",
            "It may be behind. Only a consumer's Fetch may be served by a follower (KIP-392).",
            "它可能落后。只有消费者的 Fetch 可以由 follower 处理（KIP-392）。",
        ),
        right("it returns an error", "返回错误"),
        after=1,
    ),
    "log-directory": choose(
        "Eight records of 400 kB are sent, and two of them fit into a segment of 1 MiB. Which file has offset 5?",
        "发送八条 400 kB 的消息，一个 1 MiB 的段放得下两条。offset 5 在哪个文件中？",
        right("the file 00000000000000000004.log", "文件 00000000000000000004.log"),
        wrong(
            "the file 00000000000000000005.log",
            "文件 00000000000000000005.log",
            "A segment has the name of its first record; offset 5 is the second one of its segment.",
            "段以第一条消息命名；offset 5 是该段的第二条。",
        ),
        wrong(
            "the file 00000000000000000003.log",
            "文件 00000000000000000003.log",
            "The name is not the offset of the last record of the segment before.",
            "文件名不是前一段最后一条消息的 offset。",
        ),
    ),
    "batch-format": choose(
        "One bit of a batch is changed on its way. Who notices it first?",
        "批次在途中改变了一个比特。谁最先发现？",
        right("the leader, which refuses it", "leader，它会拒绝"),
        wrong(
            "the consumer that reads it",
            "读到它的消费者",
            "Consumers check it as well (check.crcs), but the batch is not stored at all.",
            "消费者也会检查（check.crcs），但这个批次根本不会被存储。",
        ),
        wrong(
            "no program: a checksum covers only the header",
            "没有程序：校验和只覆盖头部",
            "It covers everything from the attributes to the last record.",
            "校验和覆盖从 attributes 到最后一条消息的全部内容。",
        ),
        after=1,
    ),
    "memory": choose(
        "24 MB of records are written. How much does the heap of the broker's process grow?",
        "写入 24 MB 的消息。broker 进程的堆增长多少？",
        wrong(
            "by about 24 MB",
            "约 24 MB",
            "The broker keeps no records: they are in files, and in the page cache of the operating system.",
            "broker 不保存消息：它们在文件和操作系统的页缓存中。",
        ),
        right("by far less", "少得多"),
        wrong(
            "by twice as much: records and index",
            "两倍：消息加索引",
            "The index is sparse: one entry for each 4 KiB of the log (index.interval.bytes).",
            "索引是稀疏的：日志每 4 KiB 一个条目（index.interval.bytes）。",
        ),
    ),
    "num-partitions": Number(
        Text(
            "num.partitions is 4 after a restart. How many partitions has the topic 'early' then?",
            "重启后 num.partitions 为 4。topic 'early' 此时有几个分区？",
        ),
        "early_after",
        after=1,
    ),
}
"""The prediction of each of these lessons."""
