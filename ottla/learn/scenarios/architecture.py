"""Lessons about the parts of a cluster: who does what, and the topics of the brokers themselves."""

from ottla.client.admin import topics
from ottla.cluster.znodes import BrokerIdsNode
from ottla.coordinators.naming import partition_of
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage
from ottla.wire import group_records, txn_records

SUBJECT = Subject("architecture")
_OFFSETS = "__consumer_offsets"
_TRANSACTIONS = "__transaction_state"


@SUBJECT.lesson(
    "architecture",
    brokers=3,
    question=Text(
        "What are the parts of a Kafka cluster, and how does a record travel through it?",
        "Kafka 集群由哪些部分组成？一条消息如何经过它们？",
    ),
    explanation=Text(
        "Brokers {registered} are registered in ZooKeeper (/brokers/ids), one of them, broker {controller}, is "
        "the controller. A topic is divided into partitions, each with replicas on several brokers: {assignment}. "
        "A producer chose partition {partition} by the key and sent the record to its leader, broker {leader}; "
        "the followers {followers} fetched it. A consumer group reads from the leaders: its members owned "
        "{owners}, and broker {coordinator}, the coordinator, stores their offsets. When broker {leader} died, it "
        "left /brokers/ids ({registered_after}), the controller elected broker {new_leader} as leader of the "
        "partition, and the group read '{read}' from there: no broker is a single point of failure. Apache Kafka 4 has no "
        "ZooKeeper: a quorum of controllers (KRaft) registers brokers and stores the metadata.",
        "broker {registered} 在 ZooKeeper（/brokers/ids）中注册，其中 broker {controller} 是 controller。topic 分为多个分区，"
        "每个分区在几个 broker 上有副本：{assignment}。生产者按 key 选择分区 {partition}，把消息发给它的 leader broker {leader}；"
        "follower {followers} 拉取它。消费者组从 leader 读取：成员拥有 {owners}，offset 由协调者 broker {coordinator} 保存。"
        "broker {leader} 宕机后从 /brokers/ids 消失（{registered_after}），controller 选举 broker {new_leader} 为该分区的 leader，"
        "消费者组从那里读到 {read}：集群中没有单点。Apache Kafka 4 没有 ZooKeeper：由一组 controller（KRaft）注册 broker 并保存元数据。",
    ),
)
def architecture(stage: Stage) -> None:
    """A record goes from a producer to a leader, its followers, and a member of a group."""
    cluster = stage.cluster
    topic = stage.topic(partitions=3, replicas=3)
    images = [observation.partition_image(cluster, topic, number) for number in range(3)]
    members = [
        stage.consumer(topic, group_id=stage.name, name=f"c{number}", enable_auto_commit=False)
        for number in (1, 2)
    ]
    stage.settle(members, [1, 2])
    sent = stage.producer(acks="all").send(topic, "before", key="anna").result(20)
    owner = next(
        member
        for member in members
        if sent.partition in {key.partition for key in member.assignment}
    )
    owner.commit(stage.take(owner, 1))
    registered = sorted(map(int, observation.znodes(cluster, BrokerIdsNode.PATH)))
    controller = observation.controller(stage.cluster)
    leader = images[sent.partition].leader
    coordinator = observation.coordinator(stage.cluster, stage.name)
    stage.table(
        Text("Who does what", "分工"),
        Text(
            "broker,controller,coordinator,leads,follows",
            "broker,controller,协调者,leader 分区,follower 分区",
        ),
        [
            (
                broker,
                "●" if broker == controller else "",
                "●" if broker == coordinator else "",
                [image.partition for image in images if image.leader == broker],
                [image.partition for image in images if image.leader != broker],
            )
            for broker in registered
        ],
    )
    view = stage.show(topic, sent.partition)
    group = stage.show_group(stage.name)
    stage.say(
        "A record with the key anna is in partition {partition}: leader {leader}, followers {followers}. "
        "Now the leader dies.",
        "key 为 anna 的消息在分区 {partition}：leader {leader}，follower {followers}。现在 leader 宕机。",
        registered=registered,
        controller=controller,
        coordinator=coordinator,
        assignment={image.partition: list(image.replicas) for image in images},
        partition=sent.partition,
        leader=leader,
        followers=[row.broker for row in view.replicas if row.state == "in sync"],
        copies=[[slot.value for slot in row.records] for row in view.replicas],
        owners={name: list(keys) for name, keys in group.members.items()},
    )
    stage.kill(leader)
    stage.await_leader_other_than(leader, topic, sent.partition)
    stage.producer(acks="all").send(topic, "after", key="anna").result(20)
    read = stage.take(owner, 1)
    stage.show(topic, sent.partition)
    stage.say(
        "Broker {new_leader} leads. /brokers/ids has {registered_after}. The group reads '{read}'.",
        "broker {new_leader} 成为 leader。/brokers/ids 中有 {registered_after}。消费者组读到 {read}。",
        new_leader=observation.partition_image(cluster, topic, sent.partition).leader,
        registered_after=sorted(map(int, observation.znodes(cluster, BrokerIdsNode.PATH))),
        read=[record.value.decode() for record in read],
    )


@SUBJECT.lesson(
    "internal-topics",
    question=Text(
        "Which internal topics are there, and what is in them?",
        "Kafka 有哪些内部 topic？里面存的是什么？",
    ),
    explanation=Text(
        "Two: {internal}. They are ordinary partitioned logs ({partitions} partitions here) that keep only "
        "the newest record of each key (cleanup.policy: {policies}), created at the first use. __consumer_offsets "
        "has one key for each group and partition: {offset_key}, value {offset_value}. "
        "__transaction_state has one for each transactional id: {transaction_key}, which belongs to producer id "
        "{producer_id} with epoch {producer_epoch}; a transactional id does not replace them. The "
        "leader of a partition coordinates the groups or ids in it, and a new leader reads its records first. "
        "Apache Kafka 4 has __share_group_state for share groups, too, and its controllers have the log "
        "__cluster_metadata.",
        "有两个：{internal}。它们是普通的分区日志（这里有 {partitions} 个分区），每个 key 只保留最新的一条（cleanup.policy 为 {policies}），首次使用时创建。"
        "__consumer_offsets 的 key 是组和分区：{offset_key}，值为 {offset_value}。"
        "__transaction_state 的 key 是 transactional id：{transaction_key}，它对应 producer id {producer_id} 和 epoch {producer_epoch}，并不取代它们。"
        "分区的 leader 就是其中各组或各 id 的协调者，新 leader 会先读完这些消息。"
        "Apache Kafka 4 还有共享组使用的 __share_group_state，其 controller 则使用日志 __cluster_metadata。",
    ),
)
def internal_topics(stage: Stage) -> None:
    """The records of a commit and of a transaction, decoded."""
    topic = stage.topic()
    producer = stage.producer(transactional_id=stage.name, enable_idempotence=True)
    with producer.transaction():
        producer.send(topic, "one", partition=0)
    consumer = stage.consumer(topic, group_id=stage.name, name="c1", enable_auto_commit=False)
    consumer.commit(stage.take(consumer, 1))
    with stage.cluster.admin() as brokers:
        listed = [row for row in topics.list_topics(brokers) if row.is_internal]
    partitions = {row.name: len(row.partitions) for row in listed}
    stage.show_group(stage.name)
    stage.say(
        "A transaction and a commit of an offset later, the cluster has {internal}.",
        "一次事务和一次 offset 提交之后，集群有 {internal}。",
        internal=sorted(partitions),
        partitions=partitions,
        policies={name: stage.topic_option(name, "cleanup.policy") for name in sorted(partitions)},
    )
    key, offset = _newest_commit(stage, partitions[_OFFSETS])
    transactional_id, value = _newest_transaction(stage, partitions[_TRANSACTIONS])
    stage.table(
        Text("Records in internal topics", "内部 topic 中的消息"),
        Text("topic,key,value", "topic,key,值"),
        [
            (_OFFSETS, key, f"offset {offset}"),
            (
                _TRANSACTIONS,
                transactional_id,
                f"producer id {value.producer_id}, epoch {value.producer_epoch}",
            ),
        ],
    )
    stage.say(
        "Decoded: {offset_key} = {offset_value}; {transaction_key} = producer id {producer_id}, epoch "
        "{producer_epoch}.",
        "解码后：{offset_key} = {offset_value}；{transaction_key} = producer id {producer_id}，epoch {producer_epoch}。",
        offset_key=key,
        offset_value=offset,
        transaction_key=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
    )


def _newest_commit(stage: Stage, partitions: int) -> tuple[str, int]:
    number = partition_of(stage.name, partitions)
    rows = [
        (key, group_records.decode_offset_commit_value(record.value).offset)
        for record in observation.raw_records(stage.cluster, 1, _OFFSETS, number)
        if record.key
        and record.value
        and isinstance(key := group_records.decode_key(record.key), group_records.OffsetCommitKey)
        and key.group == stage.name
    ]
    key, offset = rows[-1]
    return f"{key.group}, {key.topic}-{key.partition}", offset


def _newest_transaction(
    stage: Stage, partitions: int
) -> tuple[str, txn_records.TransactionLogValue]:
    number = partition_of(stage.name, partitions)
    rows = [
        (name, txn_records.decode_value(record.value))
        for record in observation.raw_records(stage.cluster, 1, _TRANSACTIONS, number)
        if record.key
        and record.value
        and (name := txn_records.decode_key(record.key)) == stage.name
    ]
    name, value = rows[-1]
    return name or "", value
