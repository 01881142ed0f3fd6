"""Lessons about consumer groups: rebalances, idle members, assignors, the coordinator."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.base.loading import deferred_module
from ottla.client.admin import topics
from ottla.client.records import TopicPartition
from ottla.coordinators.naming import java_hash, partition_of
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage

# The list of lessons needs no client.
if TYPE_CHECKING:
    from ottla import client
else:
    client = deferred_module("ottla.client")

SUBJECT = Subject("groups")
_OFFSETS = "__consumer_offsets"


def _counter() -> Any:
    """Return a listener that counts the assignments of a member."""

    class Counter(client.RebalanceListener):
        def __init__(self) -> None:
            self.assignments = 0

        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            self.assignments += 1

    return Counter()


def _numbers(partitions: Sequence[TopicPartition] | frozenset[TopicPartition]) -> list[int]:
    return sorted(key.partition for key in partitions)


@SUBJECT.lesson(
    "rebalance",
    question=Text(
        "Two consumers of a group read three partitions, and one leaves. Who reads what?",
        "一个组的两个消费者读三个分区，其中一个离开。谁读哪些分区？",
    ),
    explanation=Text(
        "Each partition has exactly one member of a group: c1 had {before_c1}, c2 had {before_c2}. "
        "When c2 left, the coordinator started a rebalance, and c1 had {after_c1}. It resumed at the "
        "committed offsets: {after_values} were read after the change, none twice. A rebalance starts "
        "when a member joins, leaves, stops its heartbeats or does not poll for max.poll.interval.ms, when a "
        "subscription changes, and when a subscribed topic gets partitions.",
        "组内每个分区只属于一个成员：c1 有 {before_c1}，c2 有 {before_c2}。c2 离开后协调者发起再均衡，c1 拥有 {after_c1}，"
        "并从已提交的 offset 继续：之后读到 {after_values}，没有重复。成员加入、离开、心跳停止、超过 max.poll.interval.ms 没有 poll、订阅变化，或所订阅 topic 增加分区时都会触发再均衡。",
    ),
)
def rebalance(stage: Stage) -> None:
    """The member that stays owns all partitions, and resumes at the committed offsets."""
    topic = stage.topic(partitions=3)
    producer = stage.producer()
    for number in range(3):
        producer.send(topic, f"early-{number}", partition=number).result(20)
    group = stage.name
    first = stage.consumer(topic, group_id=group, name="c1")
    second = stage.consumer(topic, group_id=group, name="c2")
    stage.settle([first, second], [1, 2])
    # Read again from the beginning: polls during the rebalances may have returned records.
    for member in (first, second):
        member.seek_to_beginning()
    early = stage.take(first, len(first.assignment)) + stage.take(second, len(second.assignment))
    first.commit()
    second.commit()
    stage.show_group(group)
    stage.say(
        "c1 owns {before_c1}, c2 owns {before_c2}; read and committed: {early}. Now c2 leaves.",
        "c1 拥有 {before_c1}，c2 拥有 {before_c2}；已读并提交：{early}。现在 c2 离开。",
        before_c1=_numbers(first.assignment),
        before_c2=_numbers(second.assignment),
        early=sorted(record.value for record in early),
    )
    second.close()
    stage.settle([first], [3])
    for number in range(3):
        producer.send(topic, f"late-{number}", partition=number).result(20)
    late = stage.take(first, 3)
    stage.show_group(group)
    stage.say(
        "c1 owns {after_c1}, and reads {after_values}.",
        "c1 拥有 {after_c1}，读到 {after_values}。",
        after_c1=_numbers(first.assignment),
        after_values=sorted(record.value for record in late),
    )


@SUBJECT.lesson(
    "idle-consumer",
    question=Text(
        "What happens if a group has more consumers than partitions?",
        "消费者比分区多会怎样？",
    ),
    explanation=Text(
        "{idle} of {members} members has nothing to read: the {partitions} partitions were divided "
        "as {sizes}. The idle member is a reserve: after another one left, every remaining member had "
        "a partition ({sizes_after}). Choose at least as many partitions as consumers. Share groups (KIP-932, Apache "
        "Kafka 4.2) have no such limit: their members share partitions and acknowledge single records.",
        "{members} 个成员中有 {idle} 个无事可做：{partitions} 个分区的分配为 {sizes}。空闲成员是后备：另一个离开后，"
        "剩下的成员都有分区（{sizes_after}）。分区数应不少于消费者数。"
        "共享组（share group，KIP-932，Apache Kafka 4.2）没有这个限制：成员共享分区，逐条确认消息。",
    ),
)
def idle_consumer(stage: Stage) -> None:
    """The third member of a group is idle while there are two partitions."""
    topic = stage.topic(partitions=2)
    members = [stage.consumer(topic, group_id=stage.name, name=f"c{n}") for n in range(1, 4)]
    stage.settle(members, [0, 1, 1])
    stage.show_group(stage.name)
    sizes = {f"c{n}": len(member.assignment) for n, member in enumerate(members, 1)}
    stage.say(
        "Partitions of each member: {sizes}. A member with a partition leaves.",
        "各成员的分区数：{sizes}。一个拥有分区的成员离开。",
        sizes=sizes,
        idle=list(sizes.values()).count(0),
        members=len(members),
        partitions=sum(sizes.values()),
    )
    leaving = next(member for member in members if member.assignment)
    leaving.close()
    remaining = [member for member in members if member is not leaving]
    stage.settle(remaining, [1, 1])
    stage.show_group(stage.name)
    stage.say(
        "Partitions of each remaining member: {sizes_after}.",
        "剩余各成员的分区数：{sizes_after}。",
        sizes_after=[len(member.assignment) for member in remaining],
    )


@SUBJECT.lesson(
    "subscription",
    question=Text(
        "A group subscribes to a pattern. Does it find a new topic, and partitions that are added?",
        "组用正则表达式订阅。新建的 topic 和新增的分区会被发现吗？",
    ),
    explanation=Text(
        "Yes, without a restart: the member owned {before}; after a matching topic was created {with_topic}; "
        "after partitions were added {with_partitions}. Each change was a rebalance ({assignments} assignments "
        "in all). The member notices changes when it refreshes its metadata (metadata.max.age.ms, 5 minutes "
        "by default), and starts new partitions where auto.offset.reset says: with latest, records "
        "that are older than the refresh are skipped. Here it read {read}.",
        "会，且不需要重启：成员最初拥有 {before}；创建匹配的 topic 后拥有 {with_topic}；增加分区后拥有 {with_partitions}。"
        "每次变化都是一次再均衡（总共分配 {assignments} 次）。成员在刷新元数据时发现变化（metadata.max.age.ms，默认 5 分钟），"
        "新分区从 auto.offset.reset 指定的位置开始：若为 latest，刷新之前的消息会被跳过。这里读到 {read}。",
    ),
)
def subscription(stage: Stage) -> None:
    """A pattern subscription gets a new topic, and new partitions of its topics."""
    first = stage.topic("orders-de", partitions=1)
    stage.topic("other", partitions=1)
    counter = _counter()
    member = stage.consumer(group_id=stage.name, name="c1", metadata_max_age_ms=100)
    member.subscribe(pattern=rf"{stage.name}\.orders-.*", listener=counter)
    stage.settle([member], [1])
    stage.show_group(stage.name)
    stage.say(
        "c1 owns {before}. Now a topic is created whose name matches.",
        "c1 拥有 {before}。现在创建一个名称匹配的 topic。",
        before=sorted(map(str, member.assignment)),
    )
    second = stage.topic("orders-fr", partitions=1)
    stage.settle([member], [2])
    stage.show_group(stage.name)
    stage.say(
        "c1 owns {with_topic}. Now {first} gets two more partitions.",
        "c1 拥有 {with_topic}。现在 {first} 增加两个分区。",
        first=first,
        with_topic=sorted(map(str, member.assignment)),
    )
    with stage.cluster.admin() as brokers:
        topics.create_partitions(brokers, first, 3)
    stage.settle([member], [4])
    producer = stage.producer()
    for topic, number in ((first, 2), (second, 0)):
        producer.send(topic, f"{topic}-{number}", partition=number).result(20)
    records = stage.take(member, 2)
    stage.show_group(stage.name)
    stage.say(
        "c1 owns {with_partitions}, and reads {read} from them.",
        "c1 拥有 {with_partitions}，并读到 {read}。",
        with_partitions=sorted(map(str, member.assignment)),
        read=sorted(record.value.decode() for record in records),
        assignments=counter.assignments,
    )


@SUBJECT.lesson(
    "assignors",
    question=Text(
        "Which assignment strategies are there, and what is wrong with range?",
        "有哪些分区分配策略？range 有什么问题？",
    ),
    explanation=Text(
        "With two topics of three partitions and two members: range divides each topic by itself, so "
        "the members got {range_sizes} partitions; round robin deals all partitions in turn, sorted by topic name: "
        "{roundrobin_owned}. If it sorted by hash, as some texts say, the result would be {dealt_by_hash}. Cooperative sticky balances "
        "({cooperative_sizes}), moves only what it must, and lets members read on during the rebalance; with sticky all of them stop. A group spans all topics that its members "
        "subscribe to; it does not belong to one topic. With group.protocol=consumer (KIP-848) the "
        "coordinator assigns: {kip848_sizes}.",
        "两个 topic 各三个分区、两个成员：range 对每个 topic 单独划分，两个成员得到 {range_sizes} 个分区；"
        "roundrobin 把所有分区按 topic 名排序后轮流分配：{roundrobin_owned}；若像某些文章所说按 hash 排序，结果会是 {dealt_by_hash}。cooperative-sticky 均衡（{cooperative_sizes}）、尽量少移动，其间成员继续读取；sticky 则会让所有成员暂停。"
        "组覆盖其成员订阅的所有 topic，并不属于某个 topic。group.protocol=consumer（KIP-848）由协调者分配：{kip848_sizes}。",
    ),
)
def assignors(stage: Stage) -> None:
    """Range gives one member four of six partitions; the others give each three."""
    first = stage.topic("clicks", partitions=3)
    second = stage.topic("views", partitions=3)
    keys = [f"{topic}-{number}" for topic in (second, first) for number in range(3)]
    stage.facts["dealt_by_name"] = _deal(sorted(keys))
    stage.facts["dealt_by_hash"] = _deal(sorted(keys, key=java_hash))
    cases = (
        ("range", {"partition_assignment_strategy": "range"}, [4, 2]),
        ("roundrobin", {"partition_assignment_strategy": "roundrobin"}, [3, 3]),
        ("cooperative", {"partition_assignment_strategy": "cooperative-sticky"}, [3, 3]),
        ("kip848", {"group_protocol": "consumer", "heartbeat_interval_ms": None}, [3, 3]),
    )
    for name, settings, sizes in cases:
        group = f"{stage.name}-{name}"
        members = [
            stage.consumer(first, second, group_id=group, name=f"c{n}", **settings) for n in (1, 2)
        ]
        stage.settle(members, sizes)
        owned = {
            f"c{n}": sorted(map(str, member.assignment)) for n, member in enumerate(members, 1)
        }
        stage.show_group(group)
        stage.facts[f"{name}_owned"] = owned
        stage.facts[f"{name}_sizes"] = sorted(map(len, owned.values()), reverse=True)
        for member in members:
            member.close()
    stage.say(
        "Partitions of each member: range {range_sizes}; roundrobin {roundrobin_sizes}; cooperative "
        "{cooperative_sizes}; KIP-848 {kip848_sizes}.",
        "各成员的分区数：range {range_sizes}；roundrobin {roundrobin_sizes}；cooperative {cooperative_sizes}；KIP-848 {kip848_sizes}。",
    )


def _deal(partitions: Sequence[str]) -> dict[str, list[str]]:
    """Return what two members get if these partitions are dealt in turn."""
    return {"c1": sorted(partitions[::2]), "c2": sorted(partitions[1::2])}


@SUBJECT.lesson(
    "coordinator",
    brokers=3,
    question=Text(
        "Who coordinates a group? Where are its offsets: in ZooKeeper? Does a broker's death rebalance it?",
        "谁是组的协调者？offset 存在哪里：ZooKeeper 吗？broker 宕机会触发再均衡吗？",
    ),
    explanation=Text(
        "The coordinator is the leader of a partition of the internal topic __consumer_offsets: "
        "abs(hash({group})) % {partitions} = {computed}, led by broker {leader}; FindCoordinator named "
        "broker {coordinator}. Offsets are records of that partition, not nodes in ZooKeeper (before "
        "0.9 they were). When broker {killed}, which is not the coordinator, died, the member was assigned "
        "{assignments} time(s) in all: the death of a broker does not rebalance a group. When the coordinator died, broker "
        "{new_coordinator} took over with the same committed offset, {committed_after}.",
        "协调者是内部 topic __consumer_offsets 某个分区的 leader：abs(hash({group})) % {partitions} = {computed}，leader 是 broker {leader}；"
        "FindCoordinator 返回 broker {coordinator}。offset 是该分区中的消息，而不是 ZooKeeper 节点（0.9 之前是）。"
        "非协调者 broker {killed} 宕机后，成员总共只被分配 {assignments} 次：broker 宕机不会触发再均衡。"
        "协调者宕机后 broker {new_coordinator} 接管，已提交的 offset 不变：{committed_after}。",
    ),
)
def coordinator(stage: Stage) -> None:
    """The coordinator leads the group's partition; its successor knows the offsets."""
    cluster = stage.cluster
    topic = stage.topic(replicas=3)
    group = stage.name
    stage.send(topic, "one", "two", acks="all")
    counter = _counter()
    member = stage.consumer(topic, group_id=group, name="c1", listener=counter)
    stage.take(member, 2)
    member.commit()
    partitions = len(cluster.node(1).broker.image.topics[_OFFSETS].partitions)
    number = partition_of(group, partitions)
    view = observation.partition_image(cluster, _OFFSETS, number)
    first = observation.coordinator(stage.cluster, group)
    stage.show_group(group)
    stage.say(
        "abs(hash({group})) % {partitions} = {computed}; broker {leader} leads it, and FindCoordinator "
        "names broker {coordinator}.",
        "abs(hash({group})) % {partitions} = {computed}；broker {leader} 是其 leader，FindCoordinator 返回 broker {coordinator}。",
        group=group,
        partitions=partitions,
        computed=number,
        leader=view.leader,
        coordinator=first,
    )
    other = next(broker for broker in view.replicas if broker != first)
    stage.kill(other)
    stage.until(
        lambda: other not in observation.partition_image(cluster, _OFFSETS, number).isr,
        "it has left",
    )
    for _ in range(5):
        member.poll(0.05)
    stage.say(
        "Broker {killed} died: the member was assigned partitions {assignments} time(s) in all.",
        "broker {killed} 宕机：成员总共被分配分区 {assignments} 次。",
        killed=other,
        assignments=counter.assignments,
    )
    cluster.restart(other)
    cluster.wait_in_sync(_OFFSETS)
    stage.kill(first)
    stage.until(
        lambda: observation.partition_image(cluster, _OFFSETS, number).leader != first,
        "a new leader",
    )
    after = stage.show_group(group)
    stage.say(
        "The coordinator died: broker {new_coordinator} took over. Committed: {committed_after}.",
        "协调者宕机：broker {new_coordinator} 接管。已提交：{committed_after}。",
        new_coordinator=observation.coordinator(stage.cluster, group),
        committed_after=dict(after.committed),
    )
