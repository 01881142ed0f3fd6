"""Lessons about metadata of a cluster: KRaft, eligible leaders, and replicas to read from."""

import json

from ottla.client.records import TopicPartition
from ottla.cluster.znodes import BrokerIdsNode, ControllerNode, PartitionStateNode, TopicNode
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.observation import partition_image
from ottla.learn.scenarios.defaults.kips import explained
from ottla.learn.stage import Stage
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

CONTROLLER = Subject("controller")
REPLICATION = Subject("replication")
READING = Subject("reading")
_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@CONTROLLER.lesson(
    "kraft",
    brokers=3,
    question=Text(
        "ZooKeeper or KRaft: where is the metadata of a cluster, and what is different?",
        "ZooKeeper 还是 KRaft：集群的元数据在哪里？有什么不同？",
    ),
    explanation=explained(
        500,
        "This cluster has the layout of ZooKeeper: broker {controller} holds {controller_path}; the partition had ISR {isr_before}, and {isr_after} "
        "after broker {failed} had died, as version {version_before} and then {version_after} of the node {state_path}. "
        "The controller reads these nodes when it is elected, and sends changes to the brokers. With KRaft there are no nodes: each change is a record in the log "
        "__cluster_metadata, which a quorum of controllers replicates (Raft); a new controller has the log already, and brokers fetch it as followers do. So a failover "
        "of the controller does not load everything, and more partitions fit into a cluster. The table above has both forms. KRaft is ready for production since Apache Kafka 3.3 (KIP-833), and the only mode since 4.0. "
        "Ottla differs: it has ZooKeeper's layout, in a ZooKeeper ensemble or embedded, and no KRaft quorum; producers and consumers see no difference.",
        "这个集群使用 ZooKeeper 的布局：broker {controller} 拥有 {controller_path}；分区的 ISR 原为 {isr_before}，broker {failed} 宕机后为 {isr_after}，"
        "即节点 {state_path} 的版本 {version_before} 和 {version_after}。controller 当选时读取这些节点，并把变化发给 broker。KRaft 没有节点：每次变化都是日志 __cluster_metadata 中的一条记录，由一组 controller 用 Raft 复制；"
        "新 controller 已拥有日志，broker 像 follower 一样拉取它。所以 controller 切换时不必加载全部数据，一个集群可容纳更多分区。上表列出了两种形式。KRaft 自 Apache Kafka 3.3 起可用于生产（KIP-833），自 4.0 起是唯一的模式。"
        "Ottla 的不同之处：它使用 ZooKeeper 的布局（ZooKeeper 集群或内嵌），没有 KRaft quorum；生产者和消费者看不到区别。",
    ),
)
def kraft(stage: Stage) -> None:
    """A change of the ISR is a new version of a node."""
    cluster = stage.cluster
    topic = stage.topic(replicas=3)
    leader, controller = cluster.leader(topic), cluster.controller()
    failed = next(broker for broker in cluster.brokers if broker not in (leader, controller))
    path = PartitionStateNode.path(topic, 0)
    state = json.loads(observation.znode(cluster, path) or "{}")
    version = partition_image(cluster, topic).partition_epoch
    stage.table(
        Text("Places of the metadata", "位置"),
        Text("metadata,ZooKeeper,KRaft", "元数据,ZooKeeper,KRaft"),
        [
            (Text("a live broker", "存活的 broker"), BrokerIdsNode.PATH, "RegisterBrokerRecord"),
            (Text("the controller", "controller"), ControllerNode.PATH, Text("leader of the quorum", "quorum 的 leader")),
            (Text("a topic", "topic"), TopicNode.path("<topic>"), "TopicRecord, PartitionRecord"),
            (Text("leader and ISR", "leader 和 ISR"), PartitionStateNode.path("<topic>", 0), "PartitionChangeRecord"),
        ],
    )  # fmt: skip
    stage.show(topic)
    stage.say(
        "Broker {controller} holds {controller_path}. ISR in {state_path}: {isr_before}. Now broker {failed} dies.",
        "broker {controller} 拥有 {controller_path}。{state_path} 中的 ISR：{isr_before}。现在 broker {failed} 宕机。",
        controller=observation.controller(cluster),
        controller_path=ControllerNode.PATH,
        state_path=path,
        isr_before=sorted(state["isr"]),
        version_before=version,
        failed=failed,
    )
    _lose(stage, topic, failed)
    state = json.loads(observation.znode(cluster, path) or "{}")
    stage.show(topic)
    stage.say(
        "Version {version_after}: ISR {isr_after}.",
        "版本 {version_after}：ISR {isr_after}。",
        isr_after=sorted(state["isr"]),
        version_after=partition_image(cluster, topic).partition_epoch,
    )


def _lose(stage: Stage, topic: str, broker: int) -> None:
    """Kill a broker, and wait until it has left the ISR."""
    stage.kill(broker)
    stage.until(lambda: broker not in partition_image(stage.cluster, topic).isr, "the ISR shrinks")


@REPLICATION.lesson(
    "eligible-leaders",
    brokers=3,
    question=Text(
        "min.insync.replicas is 2. The last replica in the ISR dies, and one that left before is alive. Has it every committed record?",
        "min.insync.replicas 为 2。ISR 中最后的副本宕机，之前离开的一个副本还活着。它有全部已提交的消息吗？",
    ),
    explanation=explained(
        966,
        "Yes, if the ISR had been as large as min.insync.replicas when it left. With ISR {isr_one} the high watermark stayed at {hw_one}, although acks=1 had written up to {leo_one}: "
        "what is written below min.insync.replicas is not committed. Broker {candidate} had {log_candidate}, all records below the high watermark. "
        "Apache Kafka keeps such replicas as eligible leader replicas (ELR), and elects one if the ISR is empty: new clusters do since 4.1, and 4.0 with eligible.leader.replicas.version=1. "
        "Ottla differs: it holds the high watermark back in the same way, but knows no ELR (its list: {elr}): the partition had no leader ({leader_waiting}) until broker {leader} was back, and lost nothing: {survivors}.",
        "有，前提是它离开时 ISR 不小于 min.insync.replicas。ISR 为 {isr_one} 时，高水位停在 {hw_one}，尽管 acks=1 已写到 {leo_one}：低于 min.insync.replicas 时写入的消息不算提交。"
        "broker {candidate} 有 {log_candidate}，即高水位之前的全部消息。Apache Kafka 把这样的副本记为 ELR（eligible leader replicas），ISR 为空时从中选举：4.1 起新集群默认如此，4.0 需设置 eligible.leader.replicas.version=1。"
        "Ottla 的不同之处：同样不让高水位前进，但没有 ELR（它的列表：{elr}）：在 broker {leader} 恢复之前分区没有 leader（{leader_waiting}），也没有丢失任何消息：{survivors}。",
    ),
)
def eligible_leaders(stage: Stage) -> None:
    """A replica outside the ISR has all committed records, and does not lead in Ottla."""
    cluster = stage.cluster
    topic = stage.topic(replicas=3, min_insync_replicas="2")
    leader = cluster.leader(topic)
    gone, candidate = [broker for broker in cluster.brokers if broker != leader]
    stage.send(topic, "committed", acks="all")
    for broker in (gone, candidate):
        _lose(stage, topic, broker)
    stage.send(topic, "alone", acks=1)
    view = stage.show(topic)
    stage.say(
        "ISR {isr_one}, log end {leo_one}, high watermark {hw_one}. Now the leader {leader} dies, and broker {candidate} starts.",
        "ISR {isr_one}，日志末端 {leo_one}，高水位 {hw_one}。现在 leader {leader} 宕机，broker {candidate} 启动。",
        isr_one=view.isr,
        hw_one=view.high_watermark,
        leo_one=observation.log_end_offset(cluster, leader, topic),
        leader=leader,
        candidate=candidate,
    )
    stage.kill(leader)
    cluster.restart(candidate)

    def is_known() -> bool:
        image = cluster.node(candidate).broker.image
        return image.partition(topic, 0) is not None and candidate in image.brokers

    stage.until(is_known, "the broker knows the topic")
    waiting = stage.show(topic)
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)])
    with cluster.admin() as brokers:
        row = brokers.ask(request, DescribeTopicPartitionsResponse).topics[0].partitions[0]
    stage.say(
        "Broker {candidate} has {log_candidate}. Leader: {leader_waiting}; eligible: {elr}. Broker {leader} starts.",
        "broker {candidate} 有 {log_candidate}。leader：{leader_waiting}；ELR：{elr}。broker {leader} 启动。",
        log_candidate=[slot.value for slot in observation.stored(cluster, candidate, topic)],
        leader_waiting=waiting.leader,
        elr=row.eligible_leader_replicas or [],
    )
    cluster.restart(leader)
    cluster.restart(gone)
    cluster.wait_in_sync(topic)
    stage.show(topic)
    stage.say("All are back. Consumers read {survivors}.", "全部恢复。消费者读到 {survivors}。", survivors=stage.values(topic))  # fmt: skip


@READING.lesson(
    "follower-fetching",
    brokers=3,
    replica_selector_class=_SELECTOR,
    question=Text(
        "Does a consumer always read from the leader? Traffic between availability zones is expensive.",
        "消费者总是从 leader 读取吗？可用区之间的流量很贵。",
    ),
    explanation=explained(
        392,
        "By default, yes. The follower, broker {follower} in rack {rack}, received {without} Fetch request(s) of a consumer without client.rack. The leader directed a consumer with client.rack={rack} "
        "to the replica in its rack: that follower received {with_rack} request(s), and the consumer read {values}. A follower returns only records below the "
        "high watermark, which it learns with its next fetch: they arrive a little later. Producers write to the leader in any case. Apache Kafka's defaults: client.rack is empty, and "
        "replica.selector.class is not set (the leader); the selector {selector} needs broker.rack, too. Ottla has the same defaults, and this one selector.",
        "默认如此。rack {rack} 中的 follower broker {follower} 收到没有 client.rack 的消费者的 {without} 次 Fetch。leader 让 client.rack={rack} 的消费者从同一 rack 的副本读取：该 follower 收到 {with_rack} 次，消费者读到 {values}。"
        "follower 只返回高水位之前的消息，而高水位随它的下一次拉取得知，所以稍晚到达。生产者始终写入 leader。Apache Kafka 的默认值：client.rack 为空，replica.selector.class 未设置（即 leader）；"
        "选择器 {selector} 还需要 broker.rack。Ottla 的默认值相同，只有这一个选择器。",
    ),
)
def follower_fetching(stage: Stage) -> None:
    """A consumer with a rack reads from the follower in this rack."""
    cluster, rack = stage.cluster, "b"
    topic = stage.topic(replicas=3)
    leader = cluster.leader(topic)
    follower = next(broker for broker in cluster.brokers if broker != leader)
    cluster.options["broker.rack"] = rack
    try:
        cluster.restart(follower)
        cluster.wait_in_sync(topic)
        stage.send(topic, "a", "b", "c", acks="all")
        stage.show(topic)
        stage.until(
            lambda: cluster.node(leader).broker.image.brokers[follower].rack == rack,
            "the leader knows the rack",
        )
        without, _ = _fetched(stage, topic, follower)
        stage.say(
            "Broker {follower} is in rack {rack}. A consumer without a rack sent it {without} Fetch request(s).",
            "broker {follower} 在 rack {rack} 中。没有 rack 的消费者向它发送了 {without} 次 Fetch。",
            follower=follower,
            rack=rack,
            without=without,
        )
        with_rack, values = _fetched(stage, topic, follower, client_rack=rack)
        stage.say(
            "A consumer with client.rack={rack} sent it {with_rack}, and read {values}.",
            "client.rack={rack} 的消费者向它发送了 {with_rack} 次，读到 {values}。",
            with_rack=with_rack,
            values=values,
            selector=_SELECTOR.rpartition(".")[2],
        )
    finally:
        del cluster.options["broker.rack"]
        cluster.restart(follower)


def _fetched(stage: Stage, topic: str, broker: int, **settings: str) -> tuple[int, list[str]]:
    """Read a topic; return how many requests for it the broker received, and the values."""
    before = observation.reads_count(stage.cluster, broker, topic)
    reader = stage.consumer(**settings)
    reader.assign({TopicPartition(topic, 0): 0})
    values = [record.value.decode() for record in stage.take(reader, 3)]
    reader.close()
    return observation.reads_count(stage.cluster, broker, topic) - before, values
