"""Lessons about offsets: committed offsets, the time of a commit, auto.offset.reset, lag."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.client.admin import offsets as admin
from ottla.client.admin import topics
from ottla.client.records import ConsumerRecord, TopicPartition
from ottla.learn import observation
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.stage import Stage

if TYPE_CHECKING:
    from ottla.client import Consumer

SUBJECT = Subject("offsets")
_INTERVAL_MS = 1


@SUBJECT.lesson(
    "committed-offset",
    question=Text(
        "Is the committed offset the last one or the next one?",
        "提交的 offset 是最后一条消息的 offset，还是下一条的？",
    ),
    explanation=Text(
        "The next one. The last record read had offset {last_read}, the committed offset is "
        "{committed}, and a consumer that took over read offset {resumed} first ({resumed_value}). "
        "Committing the last offset instead would repeat one record after each restart.",
        "是下一条。最后读到的消息 offset 为 {last_read}，提交的 offset 为 {committed}，接管的消费者首先读到 offset {resumed}"
        "（{resumed_value}）。如果提交最后一条的 offset，每次重启都会重复一条。",
    ),
)
def committed_offset(stage: Stage) -> None:
    """The committed offset is one more than the last record's."""
    topic = stage.topic()
    stage.send(topic, "a", "b", "c", "d", "e")
    group = stage.name
    first = stage.consumer(topic, group_id=group, enable_auto_commit=False, name="c1")
    records = stage.take(first, 3)
    committed = first.commit(records)
    first.close()
    stage.show(topic)
    stage.show_group(group)
    stage.say(
        "A consumer read offsets {offsets_read}, committed, and left. Committed: {committed}.",
        "消费者读取 offset {offsets_read} 后提交并离开。已提交：{committed}。",
        offsets_read=[record.offset for record in records],
        last_read=records[-1].offset,
        committed=committed[TopicPartition(topic, 0)].offset,
    )
    second = stage.consumer(topic, group_id=group, enable_auto_commit=False, name="c2")
    (next_record,) = stage.take(second, 1)
    stage.say(
        "Another consumer of the group starts with offset {resumed}: {resumed_value}.",
        "同组的另一个消费者从 offset {resumed} 开始：{resumed_value}。",
        resumed=next_record.offset,
        resumed_value=next_record.value,
    )


@SUBJECT.lesson(
    "when-to-commit",
    question=Text(
        "When does a consumer lose records, and when does it process them twice?",
        "消费者什么时候丢消息，什么时候重复消费？",
    ),
    explanation=Text(
        "Commit, then process: a crash in between loses records (at most once): {lost}. Process, then "
        "commit: a crash in between repeats them (at least once): {repeated}. Offsets stored in one "
        "transaction with the results do neither (lesson exactly-once). Automatic commits are made "
        "in a later poll for records that were returned before: at least once, if they are processed "
        "in the loop (lesson auto-commit).",
        "先提交后处理：中间崩溃会丢消息（至多一次）：{lost}。先处理后提交：中间崩溃会重复（至少一次）：{repeated}。"
        "把 offset 与结果存入同一个事务则两者都不会（见课程 exactly-once）。自动提交在之后的 poll 中提交之前返回的消息："
        "只要在循环内处理，就是至少一次（见课程 auto-commit）。",
    ),
)
def when_to_commit(stage: Stage) -> None:
    """Committing early loses the records of a crash; committing late repeats them."""
    topic = stage.topic()
    sent = ["a", "b", "c", "d"]
    stage.send(topic, *sent)
    early = _crash(stage, topic, "early", commits_first=True)
    late = _crash(stage, topic, "late", commits_first=False)
    stage.table(
        Text(
            "Records processed, with a crash after two were read and one was processed",
            "处理的消息（读到两条、处理一条后崩溃）",
        ),
        Text("commit,before the crash,after it", "提交时机,崩溃前,崩溃后"),
        [
            (Text("before processing", "处理之前"), *early),
            (Text("after processing", "处理之后"), *late),
        ],
    )
    stage.say(
        "Committed first, lost: {lost}. Processed first, twice: {repeated}.",
        "先提交，丢失：{lost}。先处理，重复：{repeated}。",
        lost=[value for value in sent if value not in early[0] + early[1]],
        repeated=[value for value in sent if value in late[0] and value in late[1]],
        not_lost=[value for value in sent if value not in late[0] + late[1]],
    )


def _crash(
    stage: Stage, topic: str, name: str, *, commits_first: bool
) -> tuple[list[str], list[str]]:
    """Return the values that were processed before and after a crash."""
    group = f"{stage.name}-{name}"
    settings = {"group_id": group, "enable_auto_commit": False}
    victim = stage.consumer(topic, name="c1", **settings)
    read = stage.take(victim, 2)
    if commits_first:
        victim.commit(read)
    before = [read[0].value.decode()]
    # The crash: the second record is not processed. The coordinator would notice it after the
    # session timeout.
    stage.evict(group)
    survivor = stage.consumer(topic, name="c2", **settings)
    expected = 2 if commits_first else 4
    after = [record.value.decode() for record in stage.take(survivor, expected)]
    return before, after


@SUBJECT.lesson(
    "auto-commit",
    question=Text(
        "enable.auto.commit: are offsets committed before or after the records are processed?",
        "enable.auto.commit：offset 是在处理之前还是之后提交的？",
    ),
    explanation=Text(
        "At the next poll after auto.commit.interval.ms, for the records that earlier polls returned. After the first poll had returned "
        "{first}, the committed offsets were: {after_first}, though auto.commit.interval.ms ({interval_ms} ms) had passed: time alone commits nothing. The "
        "second poll committed {after_second} and returned {second}. The consumer crashed there: another one read "
        "{repeated} again and lost {lost}. So a program that processes records before it polls again gets each at "
        "least once. A program that queues them for another thread and polls on does not: {queued} were committed "
        "({after_queue}) but not processed, and {lost_queued} were lost.",
        "在 auto.commit.interval.ms 到期后的下一次 poll 时，提交之前的 poll 返回的消息。第一次 poll 返回 {first} 后，虽然已超过 auto.commit.interval.ms（{interval_ms} 毫秒），已提交的 offset：{after_first}（仅仅时间到期不会提交）。"
        "第二次 poll 提交了 {after_second} 并返回 {second}。消费者此时崩溃：另一个消费者重复读到 {repeated}，丢失的消息：{lost}。"
        "所以在下一次 poll 之前处理完消息的程序，每条至少处理一次。把消息放入队列交给另一个线程并继续 poll 的程序则不然："
        "{queued} 已提交（{after_queue}）但没有处理，丢失了 {lost_queued}。",
    ),
)
def auto_commit(stage: Stage) -> None:
    """A poll commits what the poll before it returned."""
    topic = stage.topic("loop")
    stage.send(topic, "a", "b", "c", "d")
    group = f"{stage.name}-loop"
    consumer = _committing(stage, topic, group)
    first = stage.take(consumer, 2)
    after_first = observation.committed(stage.cluster, group)
    # The next poll commits; it returns records that are still to be processed.
    second = stage.take(consumer, 2)
    stage.until(lambda: bool(observation.committed(stage.cluster, group)), "the commit is stored")
    stage.show_group(group)
    stage.say(
        "Polled {first}, committed {after_first}. Polled {second}, committed {after_second}. A crash.",
        "poll 到 {first}，已提交：{after_first}。再 poll 到 {second}，已提交：{after_second}。崩溃。",
        first=_texts(first),
        after_first=after_first,
        second=_texts(second),
        after_second=observation.committed(stage.cluster, group),
    )
    after = _after_crash(stage, topic, group)
    stage.say(
        "The other one read {after}: again {repeated}, lost {lost}. Now a program that only queues records.",
        "另一个消费者读到 {after}。重复：{repeated}；丢失：{lost}。再看一个只把消息放入队列的程序。",
        after=after,
        repeated=[value for value in _texts(second) if value in after],
        lost=[value for value in _texts(second) if value not in after],
        interval_ms=_INTERVAL_MS,
    )
    topic = stage.topic("queue")
    stage.send(topic, "e", "f", "g", "h")
    group = f"{stage.name}-queue"
    consumer = _committing(stage, topic, group)
    queue = stage.take(consumer, 4)
    # The thread that processes the queue has not begun; the loop polls on.
    stage.until(lambda: not consumer.poll(0.05) and _offset(stage, group) == 4, "all are committed")
    stage.show_group(group)
    committed = observation.committed(stage.cluster, group)
    stage.show(topic)
    after = _after_crash(stage, topic, group)
    stage.say(
        "Queued {queued}, committed {after_queue}. A crash: the other one read {rest}, lost {lost_queued}.",
        "放入队列 {queued}，已提交：{after_queue}。崩溃：另一个消费者读到 {rest}，丢失：{lost_queued}。",
        queued=_texts(queue),
        after_queue=committed,
        rest=after,
        lost_queued=[value for value in _texts(queue) if value not in after],
    )


def _committing(stage: Stage, topic: str, group: str) -> "Consumer":
    return stage.consumer(
        topic,
        group_id=group,
        name="c1",
        enable_auto_commit=True,
        auto_commit_interval_ms=_INTERVAL_MS,
    )


def _after_crash(stage: Stage, topic: str, group: str) -> list[str]:
    """Return what another member reads after a crash, up to a record that is sent now."""
    stage.evict(group)
    (last,) = stage.send(topic, "later")
    survivor = stage.consumer(topic, group_id=group, enable_auto_commit=False, name="c2")
    records: list[ConsumerRecord] = []
    while not records or records[-1].offset < last.offset:
        records += stage.take(survivor, 1)
    return _texts(records)


def _offset(stage: Stage, group: str) -> int:
    return next(iter(observation.committed(stage.cluster, group).values()), 0)


def _texts(records: Iterable[ConsumerRecord]) -> list[str]:
    return [record.value.decode() for record in records]


@SUBJECT.lesson(
    "offset-reset",
    question=Text(
        "Where does a new group start to read? Why does --from-beginning matter?",
        "新的消费者组从哪里开始读？--from-beginning 有什么用？",
    ),
    explanation=Text(
        "auto.offset.reset applies only if the group has no committed offset, or one that no longer "
        "exists. A new group with earliest read {earliest}; with latest, the default, it read "
        "{latest}: only what was sent after it had looked up the end of the log. A group with the committed offset {committed} "
        "read {with_commit} in spite of earliest. The console consumer makes a new group each time unless "
        "--group is given, and starts at latest unless --from-beginning is given.",
        "只有组没有已提交 offset（或该 offset 已不存在）时 auto.offset.reset 才生效。新组用 earliest 读到 {earliest}；"
        "用默认的 latest 读到 {latest}：只有在它查询日志末端之后发送的。已提交 offset {committed} 的组即使设置 earliest 也读到 {with_commit}。"
        "控制台消费者除非指定 --group，否则每次都新建一个组；除非指定 --from-beginning，否则从 latest 开始。",
    ),
)
def offset_reset(stage: Stage) -> None:
    """Earliest and latest decide only for groups without a committed offset."""
    topic = stage.topic()
    stage.send(topic, "old-0", "old-1")
    latest = stage.consumer(topic, group_id=f"{stage.name}-l", auto_offset_reset="latest")
    stage.settle([latest], [1])
    with stage.cluster.admin() as brokers:
        committed_at = admin.CommittedOffset(1)
        admin.commit_offsets(brokers, f"{stage.name}-c", {(topic, 0): committed_at})
    stage.show(topic)
    stage.say(
        "Three groups: new with latest, new with earliest, and one that committed offset {committed}. "
        "Then records arrive.",
        "三个组：新组 latest、新组 earliest，以及已提交 offset {committed} 的组。然后有消息到达。",
        committed=committed_at.offset,
    )
    by_latest: list[str] = []

    def has_arrived() -> bool:
        stage.send(
            topic, f"new-{stage.cluster.node(1).broker.replicas.get(topic, 0).high_watermark}"
        )
        by_latest.extend(record.value.decode() for record in latest.poll(0.5))
        return bool(by_latest)

    # A record that is sent before the consumer has looked up the end is old, too.
    stage.until(has_arrived, "the group with latest reads a record")
    everything = stage.values(topic)
    earliest = stage.consumer(topic, group_id=f"{stage.name}-e")
    committed = stage.consumer(topic, group_id=f"{stage.name}-c")
    count = len(everything)
    stage.say(
        "earliest: {earliest}; latest: {latest}; committed offset {committed} and earliest: {with_commit}.",
        "earliest：{earliest}；latest：{latest}；已提交 offset {committed} 且 earliest：{with_commit}。",
        earliest=[record.value.decode() for record in stage.take(earliest, count)],
        latest=by_latest,
        with_commit=[record.value.decode() for record in stage.take(committed, count - 1)],
        stored=everything,
    )


@SUBJECT.lesson(
    "lag",
    question=Text(
        "A group falls behind. How is lag measured, and what helps?",
        "消费积压如何衡量？怎么处理？",
    ),
    explanation=Text(
        "Lag is the end offset minus the committed offset of each partition: {lag} in all. If the "
        "consumers are the limit, add members, and partitions for them: from {members_before} to "
        "{members_after} member(s), owners per partition {owners}. If fetching is the limit, make fetches larger: "
        "max.partition.fetch.bytes (1 MiB) and fetch.max.bytes (50 MiB) bound them, and with fetch.min.bytes (1) the "
        "broker waits for more. max.poll.records (500) changes no fetch: it only "
        "bounds the records that one poll returns. If old records are worthless, skip them: after a seek "
        "to the end and a commit the lag is {lag_after}.",
        "积压等于各分区末端 offset 减去已提交 offset：共 {lag}。如果瓶颈是消费者，就增加成员以及相应的分区：成员从 {members_before} 个到 "
        "{members_after} 个，各分区的拥有者为 {owners}。如果瓶颈是拉取，就让每次拉取更大：上限是 max.partition.fetch.bytes（1 MiB）和 fetch.max.bytes（50 MiB），fetch.min.bytes（1）让 broker 等到更多数据。"
        "max.poll.records（500）不影响拉取，只限制一次 poll 返回的条数。"
        "旧消息没有价值时可以跳过：seek 到末尾并提交后积压为 {lag_after}。",
    ),
)
def lag(stage: Stage) -> None:
    """Lag is computed from offsets; another member halves it, and a seek ends it."""
    topic = stage.topic(partitions=2)
    producer = stage.producer()
    for number in range(40):
        producer.send(topic, f"r{number}", partition=number % 2)
    producer.flush(20)
    group = stage.name
    first = stage.consumer(topic, group_id=group, name="c1", enable_auto_commit=False)
    first.commit(stage.take(first, 10))
    before = stage.show_group(group)
    stage.say(
        "{members_before} member; committed {committed}; lag {lag}.",
        "{members_before} 个成员；已提交 {committed}；积压 {lag}。",
        members_before=len(before.members),
        committed=dict(before.committed),
        lag=_lag(stage, topic, group),
    )
    second = stage.consumer(topic, group_id=group, name="c2", enable_auto_commit=False)
    stage.settle([first, second], [1, 1])
    after = stage.show_group(group)
    for member in (first, second):
        member.seek_to_end()
        member.poll(0.02)
        ends = member.end_offsets(member.assignment)
        member.commit(dict(ends))
    stage.say(
        "{members_after} members; after a seek to the end and a commit the lag is {lag_after}.",
        "{members_after} 个成员；seek 到末尾并提交后积压为 {lag_after}。",
        members_after=len(after.members),
        owners={key: name for name, keys in after.members.items() for key in keys},
        lag_after=_lag(stage, topic, group),
    )


def _lag(stage: Stage, topic: str, group: str) -> int:
    with stage.cluster.admin() as brokers:
        keys = [(topic, row.partition) for row in topics.describe_topic(brokers, topic).partitions]
        ends = admin.list_offsets(brokers, dict.fromkeys(keys, admin.LATEST))
        committed = admin.committed_offsets(brokers, group)
    return sum(
        ends[key].offset - (max(0, committed[key].offset) if key in committed else 0)
        for key in keys
    )
