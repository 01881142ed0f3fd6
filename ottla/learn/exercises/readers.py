"""Exercises about readers: positions of groups, records that block, transactions."""

import json
import time

from ottla.base.errors import ApiError
from ottla.client.admin import groups, offsets, transactions
from ottla.learn.events import Text
from ottla.learn.exercises.exercise import Check, ExerciseList
from ottla.learn.stage import Stage

LIST = ExerciseList()
_DAY_MS = 86_400_000
_BAD = 17


def _commit(stage: Stage, group: str, topic: str, offset: int) -> None:
    """Leave a group without members and with a committed offset."""
    consumer = stage.consumer(group_id=group, enable_auto_commit=False)
    consumer.assign([(topic, 0)])
    consumer.commit({(topic, 0): offset})
    consumer.close()


def _committed(stage: Stage, group: str, topic: str) -> int:
    with stage.cluster.admin() as brokers:
        row = offsets.committed_offsets(brokers, group).get((topic, 0))
    return -1 if row is None else row.offset


@LIST.exercise(
    "blocking-record",
    task=Text(
        "Group billing reads JSON from topic blocking-record, and fails again and again at one record. Find the record, and let the group continue with the next one, without skipping another.",
        "组 billing 从 topic blocking-record 读取 JSON，总是在同一条消息上失败。找到这条消息，让该组从下一条继续，不要多跳过。",
    ),
    hints=(
        Text(
            "The committed offset is the next record that the group reads: `ottla group describe billing`",
            "提交的 offset 是该组要读的下一条：`ottla group describe billing`",
        ),
        Text(
            "Look at the records with their offsets: `ottla consume blocking-record -e -f '%o %s\\n'`",
            "查看消息及其 offset：`ottla consume blocking-record -e -f '%o %s\\n'`",
        ),
        Text(
            "`ottla group reset billing --topic blocking-record --to N --execute`",
            "`ottla group reset billing --topic blocking-record --to N --execute`",
        ),
    ),
)
def blocking_record(stage: Stage) -> Check:
    """One of forty records is not JSON; the group has stopped some records before it."""
    topic = stage.topic()
    values = [json.dumps({"order": number}) for number in range(40)]
    values[_BAD] = "{order: " + str(_BAD)
    stage.send(topic, *values)
    _commit(stage, "billing", topic, _BAD - 3)

    def check() -> Text | None:
        offset = _committed(stage, "billing", topic)
        if offset == _BAD + 1:
            return None
        return Text(f"The group continues at offset {offset}.", f"该组从 offset {offset} 继续。")

    return check


@LIST.exercise(
    "from-yesterday",
    task=Text(
        "Group report has read topic from-yesterday to its end. Make it read again the records of the last 24 hours.",
        "组 report 已读完 topic from-yesterday。让它重新读取最近 24 小时的消息。",
    ),
    hints=(
        Text(
            "Each record has a timestamp: `ottla consume from-yesterday -e -f '%o %T\\n'`",
            "每条消息都有时间戳：`ottla consume from-yesterday -e -f '%o %T\\n'`",
        ),
        Text(
            "`ottla group reset report --topic from-yesterday --to @-24h --execute`",
            "`ottla group reset report --topic from-yesterday --to @-24h --execute`",
        ),
    ),
)
def from_yesterday(stage: Stage) -> Check:
    """Twelve records, one each six hours; the group is at the end."""
    topic = stage.topic(retention_ms="-1")
    # Half an hour after each sixth hour, so that the time of the reader does not matter.
    begin = int(time.time() * 1000) - 3 * _DAY_MS + _DAY_MS // 48
    producer = stage.producer()
    for number in range(12):
        moment = begin + number * _DAY_MS // 4
        producer.send(topic, f"r{number}", partition=0, timestamp=moment).result(20)
    _commit(stage, "report", topic, 12)

    def check() -> Text | None:
        offset = _committed(stage, "report", topic)
        return None if offset == 8 else Text(f"It reads from {offset}.", f"从 {offset} 开始读。")

    return check


@LIST.exercise(
    "open-transaction",
    task=Text(
        "Consumers with read_committed see no new record of topic open-transaction: a producer was killed in a transaction, whose time-out is long. Let them continue.",
        "read_committed 的消费者看不到 topic open-transaction 的新消息：一个生产者在事务中被杀死，事务超时很长。让消费者继续。",
    ),
    hints=(
        Text("`ottla transaction list`", "`ottla transaction list`"),
        Text("`ottla transaction abort payments`", "`ottla transaction abort payments`"),
    ),
)
def open_transaction(stage: Stage) -> Check:
    """A transaction stays open, and a record follows it."""
    topic = stage.topic()
    producer = stage.producer(transactional_id="payments", enable_idempotence=True)
    producer.begin_transaction()
    producer.send(topic, "half", partition=0).result(20)
    stage.send(topic, "whole")

    def check() -> Text | None:
        with stage.cluster.admin() as brokers:
            rows = transactions.list_transactions(brokers, states=["Ongoing"])
        count = len(rows)
        return Text(f"Open transactions: {count}.", f"未结束的事务：{count}。") if rows else None

    return check


@LIST.exercise(
    "old-group",
    task=Text(
        "Group old is not used any more, and keeps its offsets. Delete it, and keep group new.",
        "组 old 不再使用，但仍保留 offset。删除它，保留组 new。",
    ),
    hints=(
        Text("`ottla group list`", "`ottla group list`"),
        Text("`ottla group delete old --yes`", "`ottla group delete old --yes`"),
    ),
)
def old_group(stage: Stage) -> Check:
    """Two groups without members."""
    topic = stage.topic()
    stage.send(topic, "first")
    for group in ("old", "new"):
        _commit(stage, group, topic, 1)

    def check() -> Text | None:
        with stage.cluster.admin() as brokers:
            names = {row.group_id for row in groups.list_groups(brokers)}
            is_kept = bool(offsets.committed_offsets(brokers, "new"))
        if "old" not in names and is_kept:
            return None
        listed = ", ".join(sorted(names))
        return Text(f"Groups: {listed}.", f"组：{listed}。")

    return check


@LIST.exercise(
    "forget-the-start",
    task=Text(
        "The first ten records of topic forget-the-start must not be readable any more. Keep the others.",
        "topic forget-the-start 的前十条消息不应再能读到。保留其他消息。",
    ),
    hints=(
        Text("A topic can be trimmed: `ottla topic trim --help`", "topic 可以截短：`ottla topic trim --help`"),
        Text(
            "`ottla topic trim forget-the-start --to 10 --yes`",
            "`ottla topic trim forget-the-start --to 10 --yes`",
        ),
    ),
)  # fmt: skip
def forget_the_start(stage: Stage) -> Check:
    """Twenty records."""
    topic = stage.topic()
    stage.send(topic, *(f"r{number}" for number in range(20)))

    def check() -> Text | None:
        with stage.cluster.admin() as brokers:
            try:
                rows = offsets.list_offsets(brokers, {(topic, 0): offsets.EARLIEST})
            except ApiError as error:
                return Text(str(error), str(error))
        first = rows[topic, 0].offset
        return None if first == 10 else Text(f"The first is {first}.", f"第一条为 {first}。")

    return check
