"""Lessons about members of groups: time-outs, static members, cooperative rebalances."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ottla.client.records import TopicPartition
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.scenarios.defaults.kips import explained
from ottla.learn.stage import Stage

if TYPE_CHECKING:
    from ottla.client import Consumer

SUBJECT = Subject("groups")
_SESSION_MS = 1000
_POLL_MS = 1500
# Longer than the restart of a member.
_RESTART_MS = 10_000
_KINDS = {"static": "静态", "dynamic": "动态"}


class _Changes:
    """Notes the partitions that a member gets and gives up."""

    def __init__(self) -> None:
        self.assignments = 0
        self.revoked: list[int] = []

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Count an assignment."""
        self.assignments += 1

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Note partitions."""
        self.revoked += _numbers(partitions)


def _numbers(partitions: Iterable[TopicPartition]) -> list[int]:
    return sorted(key.partition for key in partitions)


@SUBJECT.lesson(
    "member-timeouts",
    group_min_session_timeout_ms="500",
    question=Text(
        "A consumer hangs in the processing of a record. When does another member get its partitions?",
        "消费者卡在处理某条消息上。另一个成员何时得到它的分区？",
    ),
    explanation=explained(
        62,
        "After max.poll.interval.ms: c2 sent heartbeats all the time, but did not poll. After {poll_s} s (the option was {poll_ms} ms) "
        "c1 owned {after_poll}; the client itself had left the group. When c2 polled again it joined again, and owned {returned}. "
        "A process that ends without leaving is noticed by its missing heartbeats: after session.timeout.ms ({session_ms} ms; it took {session_s} s). "
        "Apache Kafka's defaults: max.poll.interval.ms 5 minutes, session.timeout.ms 45 s (10 s before 3.0, KIP-735), heartbeat.interval.ms 3 s. "
        "Too short a poll interval makes slow members leave in a circle. With group.protocol=consumer (KIP-848) the broker decides: "
        "group.consumer.session.timeout.ms (45 s). Ottla has the same defaults, and its broker refuses a session.timeout.ms below group.min.session.timeout.ms (6 s), as Apache Kafka does.",
        "在 max.poll.interval.ms 之后：c2 一直发送心跳，但没有 poll。{poll_s} 秒后（选项为 {poll_ms} 毫秒）c1 拥有 {after_poll}；是客户端自己离开了组。"
        "c2 再次 poll 时重新加入，拥有 {returned}。没有离开就结束的进程，由缺失的心跳发现：在 session.timeout.ms 之后（{session_ms} 毫秒；实际 {session_s} 秒）。"
        "Apache Kafka 的默认值：max.poll.interval.ms 为 5 分钟，session.timeout.ms 为 45 秒（3.0 之前 10 秒，KIP-735），heartbeat.interval.ms 为 3 秒。"
        "poll 间隔太短会使慢的成员反复离开。group.protocol=consumer（KIP-848）时由 broker 决定：group.consumer.session.timeout.ms（45 秒）。"
        "Ottla 的默认值相同；与 Apache Kafka 一样，低于 group.min.session.timeout.ms（6 秒）的 session.timeout.ms 会被拒绝。",
    ),
)
def member_timeouts(stage: Stage) -> None:
    """A member that does not poll leaves; one that is gone is removed after its session."""
    topic = stage.topic(partitions=2)
    words = {"group_id": stage.name, "session_timeout_ms": _SESSION_MS}
    first = stage.consumer(topic, name="c1", **words)
    second = stage.consumer(topic, name="c2", max_poll_interval_ms=_POLL_MS, **words)
    stage.settle([first, second], [1, 1])
    # The interval begins with the last poll.
    second.poll(0)
    begin = time.monotonic()
    stage.show_group(stage.name)
    stage.say("Each member owns a partition. c2 does not poll any more.", "每个成员拥有一个分区。c2 不再 poll。")  # fmt: skip
    stage.settle([first], [2])
    stage.say(
        "After {poll_s} s c1 owns {after_poll}. c2 polls again.",
        "{poll_s} 秒后 c1 拥有 {after_poll}。c2 再次 poll。",
        poll_s=time.monotonic() - begin,
        poll_ms=_POLL_MS,
        after_poll=_numbers(first.assignment),
    )
    stage.settle([first, second], [1, 1])
    returned = _numbers(second.assignment)
    second.close()
    # A static member sends no message when it ends: to the coordinator it looks like a crash.
    crashing = stage.consumer(topic, name="c3", group_instance_id="c3", **words)
    stage.settle([first, crashing], [1, 1])
    stage.show_group(stage.name)
    crashing.close()
    begin = time.monotonic()
    stage.settle([first], [2])
    stage.say(
        "c2 owned {returned}. Then c3 ended without a message: after {session_s} s c1 owns {after_session}.",
        "c2 拥有 {returned}。随后 c3 没有通知就结束：{session_s} 秒后 c1 拥有 {after_session}。",
        returned=returned,
        session_ms=_SESSION_MS,
        session_s=time.monotonic() - begin,
        after_session=_numbers(first.assignment),
    )


@SUBJECT.lesson(
    "static-membership",
    question=Text(
        "A member restarts, as at a deployment. Can the group avoid the rebalance?",
        "成员重启（例如部署）。组能避免再均衡吗？",
    ),
    explanation=explained(
        345,
        "Yes, with a static member: group.instance.id names it. When the static c2 restarted, c1 got {static} assignment(s), and c2 had "
        "the partitions {owned_after} as before ({owned_before}). When a dynamic c2 restarted, c1 got {dynamic} assignment(s): c2 left the group, and joined as a new member. "
        "A static member does not leave when it closes: its partitions wait for session.timeout.ms without a reader, so a longer time-out than "
        "the restart is needed. Apache Kafka's default is dynamic: group.instance.id is not set; session.timeout.ms is 45 s. Ottla's coordinator and client have the same rules.",
        "可以，用静态成员：由 group.instance.id 命名。静态的 c2 重启时，c1 得到 {static} 次分配，c2 的分区 {owned_after} 与之前相同（{owned_before}）。"
        "动态的 c2 重启时，c1 得到 {dynamic} 次分配：c2 离开了组，又作为新成员加入。静态成员关闭时不离开组：它的分区在 session.timeout.ms 内没有读者，所以超时要长于重启时间。"
        "Apache Kafka 默认是动态成员：不设置 group.instance.id；session.timeout.ms 为 45 秒。Ottla 的协调者和客户端规则相同。",
    ),
)
def static_membership(stage: Stage) -> None:
    """The restart of a static member changes nothing for the others."""
    topic = stage.topic(partitions=2)
    observed: dict[str, tuple[int, list[int], list[int]]] = {}
    for kind in _KINDS:
        observed[kind] = _restart(stage, topic, kind)
        stage.say(
            "c2 restarted as a {kind} member: {count} assignment(s) of c1.",
            "c2 作为{kind}成员重启：c1 得到 {count} 次分配。",
            kind=Text(kind, _KINDS[kind]),
            count=observed[kind][0],
        )
    stage.say(
        "Assignments of c1: static {static}, dynamic {dynamic}.",
        "c1 的分配次数：静态 {static}，动态 {dynamic}。",
        static=observed["static"][0],
        dynamic=observed["dynamic"][0],
        owned_before=observed["static"][1],
        owned_after=observed["static"][2],
    )


def _restart(stage: Stage, topic: str, kind: str) -> tuple[int, list[int], list[int]]:
    """Restart a member; return the assignments of the other, and the partitions before and after."""
    group, changes = f"{stage.name}-{kind}", _Changes()

    def joined(name: str, **settings: Any) -> "Consumer":
        own = {"group_instance_id": name} if kind == "static" else {}
        words: dict[str, Any] = {"group_id": group, "session_timeout_ms": _RESTART_MS}
        return stage.consumer(topic, name=name, **words, **own, **settings)

    first, second = joined("c1", listener=changes), joined("c2")
    stage.settle([first, second], [1, 1])
    before, assignments = _numbers(second.assignment), changes.assignments
    stage.show_group(group)
    second.close()
    if kind == "dynamic":
        stage.settle([first], [2])
    second = joined("c2")
    stage.settle([first, second], [1, 1])
    return changes.assignments - assignments, before, _numbers(second.assignment)


@SUBJECT.lesson(
    "cooperative-rebalance",
    question=Text(
        "A member joins. Must the other members stop reading until the rebalance is over?",
        "新成员加入。其他成员必须停止读取，直到再均衡结束吗？",
    ),
    explanation=explained(
        429,
        "Only with an eager assignor. With range c1 gave up all it owned ({eager_revoked}) before the assignment, and then got {eager_after}. "
        "With cooperative-sticky there are two steps: the first assignment takes from c1 only what c2 shall get ({cooperative_revoked}); c1 kept {kept}, and read on. "
        "In a second rebalance c2 got the partitions that were free: {moved}. Apache Kafka's default for Java's consumer is the list range, cooperative-sticky (since 3.0): it uses range, and "
        "one restart of each member without range changes to cooperative. With group.protocol=consumer (KIP-848) the coordinator moves partitions step by step, and no member waits for others. "
        "Ottla differs: its client is librdkafka's, whose default is range, roundrobin; Ottla's broker serves all of them.",
        "只有 eager 策略才需要。用 range 时，c1 在分配之前放弃了全部（{eager_revoked}），之后得到 {eager_after}。"
        "cooperative-sticky 分两步：第一次分配只从 c1 收回 c2 将得到的分区（{cooperative_revoked}）；c1 保留 {kept} 并继续读取。第二次再均衡中 c2 得到空出的分区：{moved}。"
        "Apache Kafka 的 Java 消费者默认列表为 range、cooperative-sticky（3.0 起）：使用 range；去掉 range 并逐个重启成员即可切换到 cooperative。"
        "group.protocol=consumer（KIP-848）时，协调者逐步移动分区，成员之间互不等待。"
        "Ottla 的不同之处：它的客户端是 librdkafka，默认为 range、roundrobin；Ottla 的 broker 支持全部。",
    ),
)
def cooperative_rebalance(stage: Stage) -> None:
    """An eager member gives up everything; a cooperative one only what moves."""
    topic = stage.topic(partitions=4)
    for name, strategy in (("eager", "range"), ("cooperative", "cooperative-sticky")):
        group, changes = f"{stage.name}-{name}", _Changes()
        words = {"group_id": group, "partition_assignment_strategy": strategy}
        first = stage.consumer(topic, name="c1", listener=changes, **words)
        stage.settle([first], [4])
        stage.show_group(group)
        changes.revoked.clear()
        second = stage.consumer(topic, name="c2", **words)
        stage.settle([first, second], [2, 2])
        stage.show_group(group)
        stage.say(
            "{strategy}: c2 joined, and c1 gave up {revoked}.",
            "{strategy}：c2 加入，c1 放弃了 {revoked}。",
            strategy=strategy,
            revoked=sorted(changes.revoked),
        )
        stage.facts[f"{name}_revoked"] = sorted(changes.revoked)
        stage.facts[f"{name}_after"] = _numbers(first.assignment)
        moved = _numbers(second.assignment)
        first.close()
        second.close()
    stage.say(
        "With cooperative-sticky c1 kept {kept}, and {moved} moved.",
        "cooperative-sticky 时 c1 保留 {kept}，移动了 {moved}。",
        kept=stage.facts["cooperative_after"],
        moved=moved,
    )
