"""Every strategy of kafka-consumer-groups in Chromium: dry run, difference, execution, undo."""

from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Page, expect

from ottla.base.clock import RealClock
from ottla.testing import Cluster

# Seconds: only a browser shows the fields of each strategy and sends them as users do.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

_HOUR_MS = 3600 * 1000
_RECORDS = 10
# The offset that the group has committed in each of both partitions.
_COMMITTED = 6


class Case(NamedTuple):
    """A strategy, the fields that it needs, and the offsets of both partitions after it."""

    strategy: str
    fields: dict[str, str]
    after: tuple[int | None, int | None]
    picked: tuple[str, ...] = ()


# Record N of each partition is N hours younger than the first one; the last one is an hour old.
CASES = [
    Case("to-earliest", {}, (0, 0)),
    Case("to-latest", {}, (10, 10)),
    Case("to-offset", {"Offset": "4"}, (4, 4)),
    Case("to-offset", {"Offset": "99", "Only these topics": "timed"}, (10, 10)),
    Case("shift-by", {"Records (negative: back)": "-4"}, (2, 2)),
    Case("shift-by", {"Records (negative: back)": "3"}, (9, 6), picked=("timed-0",)),
    Case("to-datetime", {"Time (UTC)": "3"}, (3, 3)),
    Case("by-duration", {"Duration (ISO 8601)": "PT2H30M"}, (8, 8)),
    Case("from-file", {"Lines topic,partition,offset": "timed,1,2"}, (6, 2)),
    Case("from-file", {"New offset of timed-0": "5", "New offset of timed-1": "7"}, (5, 7)),
    Case("to-current", {}, (6, 6)),
    Case("delete", {}, (None, None)),
]


@pytest.fixture(scope="module")
def first_ms(cluster: Cluster) -> int:
    """Return the time of the first record of the topic timed."""
    cluster.create_topic("timed", partitions=2)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    first = RealClock().time_ms() - _RECORDS * _HOUR_MS
    for number in range(_RECORDS):
        for partition in (0, 1):
            at_ms = first + number * _HOUR_MS
            producer.produce("timed", "x", partition=partition, timestamp=at_ms)
    producer.flush(10)
    return first


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> AdminClient:
    """Return a client that asks the cluster itself."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def committed(client: AdminClient, group: str) -> tuple[int | None, ...]:
    """Return the committed offsets of both partitions."""
    request = ConsumerGroupTopicPartitions(group)
    answer = client.list_consumer_group_offsets([request])[group].result(10)
    offsets = {row.partition: row.offset for row in answer.topic_partitions if row.offset >= 0}
    return offsets.get(0), offsets.get(1)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number].strategy)
def test_offsets_are_planned_changed_and_undone(
    page: Page, client: AdminClient, first_ms: int, number: int
) -> None:
    """The cluster has the offsets of the difference only after the execution, and then again."""
    case, group = CASES[number], f"group-{number}"
    positions = [TopicPartition("timed", partition, _COMMITTED) for partition in (0, 1)]
    request = ConsumerGroupTopicPartitions(group, positions)
    client.alter_consumer_group_offsets([request])[group].result(10)
    before = (_COMMITTED, _COMMITTED)
    page.goto(f"/c/local/group/offsets?id={group}")
    page.get_by_label("Strategy").select_option(case.strategy)
    for label, text in case.fields.items():
        if label == "Time (UTC)":
            at_ms = first_ms + int(text) * _HOUR_MS
            text = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        page.get_by_label(label, exact=True).fill(text)
    for name in case.picked:
        page.get_by_label(f"Only {name}").check()
    page.get_by_role("button", name="Dry run").click()
    plan = page.locator("section", has=page.get_by_role("heading", name="What would change"))
    changes = [
        (partition, after)
        for partition, after in enumerate(case.after)
        if after != before[partition]
    ]
    expect(plan.locator("tr.changed")).to_have_count(len(changes))
    for partition, after in changes:
        cells = plan.get_by_role("row", name=f"timed-{partition}").get_by_role("cell")
        expect(cells.nth(1)).to_have_text(str(_COMMITTED))
        expect(cells.nth(2)).to_have_text("–" if after is None else str(after))
    assert committed(client, group) == before
    page.get_by_role("button", name="Change the offsets").click()
    expect(page.get_by_role("status")).to_have_text("The offsets are changed.")
    assert committed(client, group) == case.after
    page.get_by_role("button", name="Undo").click()
    expect(plan.locator("tr.changed")).to_have_count(len(changes))
    if not changes:
        expect(page.get_by_role("button", name="Change the offsets")).to_be_disabled()
        return
    page.get_by_role("button", name="Change the offsets").click()
    expect(page.get_by_role("status")).to_have_text("The offsets are changed.")
    assert committed(client, group) == before
