"""The lesson about the controller's duties: kinds of event, and what it does at each."""

import json

from ottla.client.admin import replicas, topics
from ottla.cluster.znodes import (
    BrokerIdsNode,
    DeleteTopicsNode,
    IsrChangeNode,
    LogDirEventNode,
    PartitionStateNode,
    PreferredElectionNode,
    ReassignPartitionsNode,
    TopicNode,
    TopicsNode,
)
from ottla.learn import observation
from ottla.learn.events import NONE, Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage

SUBJECT = Subject("controller")
_EVENTS = {
    "topic created": "新建 topic",
    "partition added": "增加分区",
    "broker died": "broker 宕机",
    "ISR changed": "ISR 变化",
    "preferred election": "preferred 选举",
    "reassignment": "分区重分配",
    "topic deleted": "删除 topic",
}


@SUBJECT.lesson(
    "controller-duties",
    brokers=3,
    question=Text(
        "Which kinds of event does the controller react to?",
        "controller 监听哪些事件？",
    ),
    explanation=Text(
        "New topics, added partitions, deleted topics, brokers that come and go, ISRs that change, preferred elections, "
        "reassignments, and log directories that fail. Apache Kafka's controller with ZooKeeper (up to 3.9) watches a znode "
        "for each of these eight kinds: {nodes}, and {log_dir_node}. Broker {controller} is the controller here and "
        "handled the first seven; no disk failed. It writes the result to ZooKeeper and sends it to the brokers: after the death of broker {leader} "
        "the state of the partition was: {died}; after its return: {changed}; after the reassignment: {moved}. Since KIP-455, KIP-460 and KIP-497 "
        "tools and leaders send reassignments, elections and ISRs as requests. Ottla differs: its controller "
        "watches /brokers/ids, and receives all other kinds as requests. With KRaft (Apache Kafka 4) there are no znodes: brokers register at the "
        "controller and send it heartbeats.",
        "新建 topic、增加分区、删除 topic、broker 上下线、ISR 变化、preferred 选举、分区重分配，以及日志目录故障。使用 ZooKeeper 的 Apache Kafka（直到 3.9）为这八类事件各监听一个 znode：{nodes}，以及 {log_dir_node}。"
        "broker {controller} 是 controller，这里完成了前七项（没有磁盘故障）。它把结果写入 ZooKeeper 并通知各 broker：broker {leader} 宕机后分区状态为：{died}；恢复后：{changed}；重分配后：{moved}。"
        "自 KIP-455、KIP-460 和 KIP-497 起，工具和 leader 以请求的形式发送重分配、选举和 ISR。Ottla 的不同之处：controller 只监听 /brokers/ids，其余都以请求接收。"
        "KRaft（Apache Kafka 4）中没有 znode：broker 向 controller 注册并发送心跳。",
    ),
)
def controller_duties(stage: Stage) -> None:
    """Seven events, and what the controller writes to ZooKeeper after each."""
    topic = stage.topic(partitions=1, replicas=2)
    observed = {"topic created": _state(stage, topic)}
    with stage.cluster.admin() as brokers:
        topics.create_partitions(brokers, topic, 2)
    stage.cluster.leader(topic, 1)
    observed["partition added"] = _state(stage, topic, 1)
    stage.show(topic, 0, 1)
    stage.say(
        "Broker {controller}, the controller, elected leaders for a new topic, and for an added partition.",
        "controller（broker {controller}）为新 topic 和新增的分区选举了 leader。",
        controller=observation.controller(stage.cluster),
        topic_created=observed["topic created"],
        partition_added=observed["partition added"],
    )
    observed |= _broker_events(stage, topic)
    observed |= _admin_events(stage, topic)
    nodes = {
        "topic created": TopicsNode.PATH,
        "partition added": TopicNode.path("<topic>"),
        "broker died": BrokerIdsNode.PATH,
        "ISR changed": IsrChangeNode.PARENT,
        "preferred election": PreferredElectionNode.PATH,
        "reassignment": ReassignPartitionsNode.PATH,
        "topic deleted": DeleteTopicsNode.PATH,
    }
    stage.table(
        Text("Seven events", "七类事件"),
        Text("event,listener on,state in ZooKeeper", "事件,监听的 znode,ZooKeeper 中的状态"),
        [(Text(event, _EVENTS[event]), node, observed[event]) for event, node in nodes.items()],
    )
    stage.say(
        "Broker {controller} has handled {count} kinds of event.",
        "broker {controller} 处理了 {count} 类事件。",
        count=len(nodes),
        observed=observed,
        nodes=list(nodes.values()),
        log_dir_node=LogDirEventNode.PARENT,
    )


def _state(stage: Stage, topic: str, partition: int = 0) -> str | Text:
    """Return leader and ISR of a partition as they are in ZooKeeper."""
    content = observation.znode(stage.cluster, PartitionStateNode.path(topic, partition))
    if content is None:
        return NONE
    fields = json.loads(content)
    isr = ",".join(map(str, sorted(fields["isr"])))
    return f"leader {fields['leader']}, epoch {fields['leader_epoch']}, ISR {isr}"


def _broker_events(stage: Stage, topic: str) -> dict[str, str | Text]:
    cluster = stage.cluster
    leader = cluster.leader(topic)
    stage.kill(leader)
    stage.await_leader_other_than(leader, topic)
    died, survivor = _state(stage, topic), cluster.leader(topic)
    stage.show(topic)
    cluster.restart(leader)
    cluster.wait_in_sync(topic)
    changed = _state(stage, topic)
    with cluster.admin() as brokers:
        replicas.elect_leaders(brokers, [(topic, 0)])
    stage.until(
        lambda: observation.partition_image(cluster, topic).leader == leader, "it leads again"
    )
    stage.show(topic)
    stage.say(
        "Broker {leader} died: {died}. It returned: {changed}. After a preferred election: {preferred}.",
        "broker {leader} 宕机：{died}。恢复后：{changed}。preferred 选举后：{preferred}。",
        leader=leader,
        survivor=survivor,
        died=died,
        changed=changed,
        preferred=_state(stage, topic),
    )
    return {
        "broker died": died,
        "ISR changed": changed,
        "preferred election": _state(stage, topic),
    }


def _admin_events(stage: Stage, topic: str) -> dict[str, str | Text]:
    cluster = stage.cluster
    before = observation.partition_image(cluster, topic).replicas
    other = next(broker for broker in cluster.brokers if broker not in before)
    target = (other, before[0])

    def has_moved() -> bool:
        image = observation.partition_image(cluster, topic)
        return tuple(image.replicas) == target and image.leader in target

    with cluster.admin() as brokers:
        replicas.alter_partition_reassignments(brokers, {(topic, 0): target})
        stage.until(has_moved, "the partition is on its new replicas")
        moved = _state(stage, topic)
        stage.show(topic)
        topics.delete_topic(brokers, topic)
    stage.until(
        lambda: topic not in observation.znodes(cluster, TopicsNode.PATH), "the topic is deleted"
    )
    stage.say(
        "Moved from {replicas_before} to {replicas_after}: {moved}. Then the topic was deleted: {deleted}.",
        "从 {replicas_before} 移到 {replicas_after}：{moved}。然后删除 topic：{deleted}。",
        replicas_before=list(before),
        replicas_after=list(target),
        moved=moved,
        deleted=_state(stage, topic),
    )
    return {"reassignment": moved, "topic deleted": _state(stage, topic)}
