"""Predictions for the lessons about defaults of Apache Kafka."""

from collections.abc import Mapping

from ottla.learn.events import Text
from ottla.learn.predictions.prediction import Number, Prediction, choose, right, wrong

DEFAULTS: Mapping[str, Prediction | Number] = {
    "compaction": choose(
        "anna has the values 1 and 2 in the full segment, and gets the value 3 in the next one. Which stay after a pass of the cleaner?",
        "anna 在写满的段中有值 1 和 2，在下一段中得到值 3。一次压缩后保留哪些？",
        wrong(
            "the value 3",
            "值 3",
            "The newest segment is not compacted, and its keys do not count yet.",
            "最新的段不压缩，其中的 key 还不计入。",
        ),
        right("the values 2 and 3", "值 2 和 3"),
        wrong(
            "all of them",
            "全部",
            "2 is newer than 1, and both are in a segment that may be compacted.",
            "2 比 1 新，而且两者都在可以压缩的段中。",
        ),
        after=1,
    ),
    "retention": choose(
        "The first two records are in one segment, the others in the next. Which ages are left?",
        "前两条在一个段中，其余在下一个段。留下哪些年龄？",
        wrong(
            "10 minutes",
            "10 分钟",
            "Retention deletes segments. The record of 120 minutes shares one with a younger record.",
            "过期删除以段为单位。120 分钟的消息与较新的在同一段。",
        ),
        right("120 and 10 minutes", "120 和 10 分钟"),
        wrong(
            "all but the first: the group has read only that one",
            "除第一条外全部：组只读了第一条",
            "Retention does not ask who has read a record.",
            "过期删除不管谁读过。",
        ),
        after=1,
    ),
    "member-timeouts": choose(
        "c2 sends heartbeats, but does not poll. What happens to its partition?",
        "c2 发送心跳，但不再 poll。它的分区会怎样？",
        wrong(
            "it stays with c2 as long as heartbeats come",
            "只要有心跳就留在 c2",
            "That would hide a program that hangs: the client leaves after max.poll.interval.ms.",
            "那会掩盖卡住的程序：客户端在 max.poll.interval.ms 之后离开。",
        ),
        right("c1 gets it after max.poll.interval.ms", "max.poll.interval.ms 之后归 c1"),
        wrong(
            "c1 gets it after session.timeout.ms",
            "session.timeout.ms 之后归 c1",
            "The session ends without heartbeats, as when the process is gone.",
            "没有心跳时会话才结束，例如进程已不存在。",
        ),
        after=1,
    ),
    "static-membership": Number(
        Text(
            "c1 and c2 are static members, and c2 restarts. How many assignments does c1 get?",
            "c1 和 c2 是静态成员，c2 重启。c1 得到几次分配？",
        ),
        "static",
    ),
    "cooperative-rebalance": Number(
        Text(
            "c1 owns four partitions, and c2 joins, with cooperative-sticky. How many partitions does c1 give up?",
            "c1 拥有四个分区，c2 以 cooperative-sticky 加入。c1 放弃几个分区？",
        ),
        "cooperative_revoked",
        after=1,
    ),
    "kraft": choose(
        "A follower dies. Where is the new ISR of the partition stored in this cluster?",
        "一个 follower 宕机。在这个集群中，分区的新 ISR 存在哪里？",
        wrong(
            "in a record of __cluster_metadata",
            "__cluster_metadata 的一条记录中",
            "KRaft does that. This cluster has the layout of ZooKeeper.",
            "KRaft 如此。这个集群使用 ZooKeeper 的布局。",
        ),
        right("in the znode of the partition", "该分区的 znode 中"),
        wrong(
            "in the memory of the leader only",
            "只在 leader 的内存中",
            "Then the next controller could not know which replicas may lead.",
            "那样下一个 controller 就不知道哪些副本可以成为 leader。",
        ),
        after=1,
    ),
    "eligible-leaders": choose(
        "The broker that starts has every committed record, but is not in the ISR. Who leads the partition here?",
        "启动的 broker 有全部已提交的消息，但不在 ISR 中。这里谁是分区的 leader？",
        wrong(
            "that broker, at once",
            "立即由该 broker 担任",
            "Apache Kafka does that with ELR. Ottla has no list of eligible replicas.",
            "Apache Kafka 借助 ELR 如此。Ottla 没有 ELR 列表。",
        ),
        right("no broker, until the former leader is back", "没有，直到原 leader 恢复"),
        after=1,
    ),
    "follower-fetching": choose(
        "A consumer with client.rack=b reads. Which broker sends it the records?",
        "client.rack=b 的消费者读取。哪个 broker 把消息发给它？",
        wrong(
            "the leader",
            "leader",
            "The consumer asks it first, and it directs the consumer to the replica in its rack.",
            "先询问 leader，leader 把消费者引到同一 rack 的副本。",
        ),
        right("the follower in rack b", "rack b 中的 follower"),
        wrong(
            "all three by turns",
            "三个轮流",
            "A selector chooses one replica, which the consumer keeps for some time.",
            "选择器选出一个副本，消费者会使用它一段时间。",
        ),
        after=1,
    ),
    "dead-letters": Number(
        Text(
            "The third of four records fails three times. The program sets it aside, and processes the rest. Which offset is committed then?",
            "四条消息中的第三条失败了三次。程序把它搁置，并处理到末尾。此时提交的 offset 是多少？",
        ),
        "committed",
        after=1,
    ),
    "delivery-timeout": choose(
        "The producer has its error, and the leader continues. Is the record stored?",
        "生产者已得到错误，leader 继续运行。消息会被存储吗？",
        wrong(
            "no: the producer has given up",
            "不会：生产者已放弃",
            "Nothing takes a request back that is on its way.",
            "已经发出的请求无法收回。",
        ),
        right("yes", "会"),
        wrong(
            "only if the program sends it again",
            "只有程序再发一次才会",
            "Then it is stored twice.",
            "那样会存储两次。",
        ),
        after=2,
    ),
}
"""The prediction of each of these lessons."""
