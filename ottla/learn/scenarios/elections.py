"""Lessons about the controller: creation of topics, and elections after a broker has died."""

from ottla.base.errors import ErrorCode
from ottla.client.admin import replicas, topics
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

SUBJECT = Subject("controller")


@SUBJECT.lesson(
    "controller",
    brokers=3,
    question=Text(
        "What does the controller do, and what is elected when it dies?",
        "controller 的职责是什么？它宕机后会选举什么？",
    ),
    explanation=Text(
        "One broker is the controller: the first that creates /controller in ZooKeeper. It elects "
        "the leaders of partitions. When broker {old_controller} died, broker {new_controller} became "
        "controller with epoch {new_epoch} (before: {old_epoch}), and elected new leaders: the first "
        "live in-sync replica in assignment order, not the broker with the fewest leaders. The leaders "
        "were {leaders_before}, then {leaders_after}; {leaders_preferred} after a preferred election, "
        "which returns leadership to the first replica of each assignment. With KRaft, the only mode of Apache "
        "Kafka 4, the controllers elect one of them by votes (Raft), not by a znode.",
        "只有一个 broker 是 controller：最先在 ZooKeeper 创建 /controller 的那个。它负责选举分区 leader。"
        "broker {old_controller} 宕机后，broker {new_controller} 成为 controller，epoch 为 {new_epoch}（之前 {old_epoch}），"
        "并按分配顺序选举第一个存活的 ISR 副本为 leader，而不是 leader 最少的 broker。leader 分布从 {leaders_before} 变为 {leaders_after}；"
        "preferred 选举后为 {leaders_preferred}，即把 leader 还给每个分配中的第一个副本。"
        "KRaft 是 Apache Kafka 4 唯一的模式：controller 之间用 Raft 投票选出其中一个，不再依赖 znode。",
    ),
)
def controller(stage: Stage) -> None:
    """A new controller has a higher epoch and elects leaders in assignment order."""
    cluster = stage.cluster
    topic = stage.topic(partitions=3, replicas=3)
    old = cluster.controller()
    assignment = {
        number: list(observation.partition_image(cluster, topic, number).replicas)
        for number in range(3)
    }
    stage.show(topic, 0, 1, 2)
    stage.say(
        "Broker {old_controller} is the controller, epoch {old_epoch}. Replicas: {assignment}. It dies.",
        "broker {old_controller} 是 controller，epoch {old_epoch}。副本分配：{assignment}。它宕机。",
        old_controller=old,
        old_epoch=cluster.node(old).broker.image.controller_epoch,
        assignment=assignment,
        leaders_before=_leaders(stage, topic),
    )
    stage.kill(old)
    new = cluster.controller()
    stage.until(lambda: old not in _leaders(stage, topic), "other brokers lead")
    stage.show(topic, 0, 1, 2)
    stage.say(
        "Broker {new_controller} is the controller, epoch {new_epoch}. Leaders: {leaders_after}.",
        "broker {new_controller} 成为 controller，epoch {new_epoch}。leader：{leaders_after}。",
        new_controller=new,
        new_epoch=cluster.node(new).broker.image.controller_epoch,
        leaders_after=_leaders(stage, topic),
        first_live=[
            next(broker for broker in assignment[number] if broker != old) for number in range(3)
        ],
    )
    cluster.restart(old)
    cluster.wait_in_sync(topic)
    with cluster.admin() as brokers:
        replicas.elect_leaders(brokers, [(topic, number) for number in range(3)])
    preferred = [assignment[number][0] for number in range(3)]
    stage.until(lambda: _leaders(stage, topic) == preferred, "the preferred replicas lead")
    stage.say(
        "Broker {old_controller} is back; after a preferred election the leaders are "
        "{leaders_preferred}.",
        "broker {old_controller} 恢复；preferred 选举后 leader 为 {leaders_preferred}。",
        leaders_preferred=_leaders(stage, topic),
    )


def _leaders(stage: Stage, topic: str) -> list[int]:
    return [observation.partition_image(stage.cluster, topic, number).leader for number in range(3)]


@SUBJECT.lesson(
    "create-topic",
    brokers=3,
    question=Text(
        "What happens when a topic is created?",
        "创建 topic 时底层发生了什么？",
    ),
    explanation=Text(
        "The controller (broker {controller}) chose replicas for each partition ({assignment}), wrote "
        "them to ZooKeeper under /brokers/topics, elected the first replica of each as leader "
        "({leaders}) and sent LeaderAndIsr to the brokers, which created a folder for each replica "
        "({folders}). The first replicas rotate over the brokers: that balances the leaders. This is the way of a cluster with "
        "ZooKeeper. In Apache Kafka 4 (KRaft) the controller appends a record for the topic and one for each partition to the metadata log "
        "(__cluster_metadata); the brokers replay that log, and create their folders. LeaderAndIsr does not exist any more.",
        "controller（broker {controller}）为每个分区选择副本（{assignment}），写入 ZooKeeper 的 /brokers/topics，"
        "选举每个分区的第一个副本为 leader（{leaders}），并向 broker 发送 LeaderAndIsr，各 broker 为每个副本创建目录（{folders}）。"
        "第一个副本在 broker 之间轮换，从而均衡 leader。这是使用 ZooKeeper 的集群的做法。"
        "Apache Kafka 4（KRaft）中，controller 把 topic 和各分区作为记录追加到元数据日志（__cluster_metadata），broker 重放该日志并创建目录，不再有 LeaderAndIsr。",
    ),
)
def create_topic(stage: Stage) -> None:
    """Each partition has replicas on two brokers, a leader and a folder on each."""
    cluster = stage.cluster
    stage.say(
        "Broker {controller} is the controller. Create a topic with 3 partitions, 2 replicas each.",
        "broker {controller} 是 controller。创建一个 3 分区、2 副本的 topic。",
        controller=cluster.controller(),
    )
    topic = stage.topic(partitions=3, replicas=2)
    stage.show(topic, 0, 1, 2)
    images = [observation.partition_image(cluster, topic, number) for number in range(3)]
    folders = {
        broker: sorted(
            path.name
            for number in range(3)
            if (path := observation.folder(cluster, broker, topic, number)).exists()
        )
        for broker in cluster.brokers
    }
    stage.say(
        "Folders by broker: {folders}.",
        "各 broker 上的目录：{folders}。",
        folders=folders,
        assignment={image.partition: list(image.replicas) for image in images},
        leaders=[image.leader for image in images],
    )


@SUBJECT.lesson(
    "direct-to-leader",
    brokers=3,
    question=Text(
        "Does a producer send to the leader directly? How does it find it: in ZooKeeper?",
        "生产者是否直接把消息发给 leader？它如何找到 leader：通过 ZooKeeper 吗？",
    ),
    explanation=Text(
        "Clients ask any broker for metadata: brokers {asked} all named broker {leader}. They connect "
        "to the leader itself; there is no router, and no client reads ZooKeeper. A follower returns "
        "{refusal}, and the client then asks for metadata again. Only consumers may fetch from a follower, "
        "if replica.selector.class selects one, as in the same rack (KIP-392).",
        "客户端向任意 broker 请求元数据：broker {asked} 都回答 leader 是 broker {leader}。客户端直接连接 leader，"
        "没有路由层，也不读取 ZooKeeper。follower 会返回 {refusal}，客户端随后刷新元数据。"
        "只有消费者可以从 follower 拉取，前提是 replica.selector.class 选择了这个 follower，例如因为在同一机架（KIP-392）。",
    ),
)
def direct_to_leader(stage: Stage) -> None:
    """Every broker names the same leader, and a follower refuses the leader's work."""
    cluster = stage.cluster
    topic = stage.topic(replicas=3)
    stage.show(topic)
    named = {}
    for address, broker in zip(cluster.bootstrap.split(","), cluster.brokers, strict=True):
        with type(cluster.admin())(address) as brokers_of_one:
            named[broker] = topics.describe_topic(brokers_of_one, topic).partitions[0].leader
    leader = cluster.leader(topic)
    stage.say(
        "Metadata from brokers {asked}: the leader is {answers}.",
        "来自 broker {asked} 的元数据：leader 是 {answers}。",
        asked=list(named),
        answers=list(named.values()),
        leader=leader,
    )
    follower = next(broker for broker in cluster.brokers if broker != leader)
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
    )
    with cluster.admin() as brokers:
        response = brokers.ask_node(follower, request, ListOffsetsResponse)
    code = ErrorCode(response.topics[0].partitions[0].error_code)
    stage.say(
        "A request that only the leader accepts (ListOffsets), sent to follower {follower}: {refusal}.",
        "把只有 leader 才回答的请求（ListOffsets）发给 follower {follower}：{refusal}。",
        follower=follower,
        refusal=code.name,
    )
