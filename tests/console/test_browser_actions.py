"""Actions in Chromium, each proven at the cluster: brokers, topics, records, downloads, streams."""

import csv
import io
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)
from playwright.sync_api import Locator, Page, expect

from ottla.console.model.log_inspector import read_batches
from ottla.console.model.messages import browsing
from ottla.console.model.messages.scanning import Scan, Scanned
from ottla.console.pages.topics import messages
from ottla.console.server import ConsoleServer
from ottla.testing import Cluster
from tests.console.chromium import Watched
from tests.console.conftest import RECORDS
from tests.console.test_streams import application as application

# Seconds: only a browser runs the scripts and sends the forms as users do.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

_PATIENCE_S = 20.0
# More responses of 1 MB than a search reads before it is stopped.
_LARGE_RECORDS, _LARGE_BYTES = 8_000, 2_000


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> AdminClient:
    """Return a client that asks the cluster itself."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def option(client: AdminClient, kind: ResourceType, name: str, option_name: str) -> ConfigEntry:
    """Return an option as the cluster describes it."""
    resource = ConfigResource(kind, name)
    entry: ConfigEntry = client.describe_configs([resource])[resource].result(10)[option_name]
    return entry


def partitions_of(client: AdminClient, topic: str) -> int:
    """Return the number of partitions."""
    described = client.describe_topics(TopicCollection([topic]))
    return len(described[topic].result(10).partitions)


def bounds(client: AdminClient, topic: str, partition: int = 0) -> tuple[int, int]:
    """Return the first offset of a partition and its end."""
    key = TopicPartition(topic, partition)
    first, end = (
        client.list_offsets({key: spec})[key].result(10).offset
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    return first, end


def read(cluster: Cluster, topic: str, partition: int = 0) -> list[Message]:
    """Return all records of a partition."""
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "test",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)
        consumer.assign([TopicPartition(topic, partition, first)])
        return consumer.consume(end - first, timeout=_PATIENCE_S) if end > first else []
    finally:
        consumer.close()


def fold_out(page: Page, title: str) -> Locator:
    """Open a part of the page and return its form."""
    page.locator("summary", has_text=title).click()
    return page.locator("details[open]", has_text=title).locator("form")


def test_an_option_of_a_broker_is_set_and_reset(page: Page, client: AdminClient) -> None:
    """The preview changes nothing; the broker has the value until the default is restored."""
    page.goto("/c/local/brokers/1/settings?q=log.roll")
    page.get_by_role("link", name="log.roll.ms", exact=True).click()
    page.get_by_label("Value (").fill("3600000")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="What would change")).to_be_visible()
    before = option(client, ResourceType.BROKER, "1", "log.roll.ms")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("log.roll.ms is set to 3600000.")
    entry = option(client, ResourceType.BROKER, "1", "log.roll.ms")
    assert (entry.value, entry.source) == (
        "3600000",
        ConfigSource.DYNAMIC_BROKER_CONFIG.value,
    )
    page.get_by_role("link", name="log.roll.ms", exact=True).click()
    page.get_by_role("button", name="Reset to default").click()
    expect(page.get_by_role("status")).to_have_text("log.roll.ms has its default again.")
    after = option(client, ResourceType.BROKER, "1", "log.roll.ms")
    assert (after.value, after.source) == (before.value, before.source)
    assert before.value != "3600000"


def test_a_default_of_all_brokers_is_set_and_reset(page: Page, client: AdminClient) -> None:
    """The option is in the table with its source, and in each broker."""
    page.goto("/c/local/brokers/defaults")
    form = fold_out(page, "Set an option")
    form.get_by_label("Option").fill("log.retention.ms")
    form.get_by_label("Value").fill("7200000")
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("log.retention.ms is set to 7200000.")
    entry = option(client, ResourceType.BROKER, "1", "log.retention.ms")
    assert (entry.value, entry.source) == (
        "7200000",
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
    )
    page.get_by_role("link", name="log.retention.ms", exact=True).click()
    page.get_by_role("button", name="Reset to default").click()
    expect(page.get_by_role("status")).to_have_text("log.retention.ms has its default again.")
    assert option(client, ResourceType.BROKER, "1", "log.retention.ms").value != "7200000"


def test_a_topic_is_copied_with_its_records(
    page: Page, cluster: Cluster, client: AdminClient
) -> None:
    """The copy has the partitions, options, keys and headers of the original."""
    page.goto("/c/local/topics/payments")
    form = fold_out(page, "Copy the topic")
    form.get_by_label("Name of the copy").fill("payments-copy")
    form.get_by_label("with its records").check()
    form.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status")).to_have_text("Topic payments-copy is created.")
    expect(page.get_by_role("heading", name="payments-copy")).to_be_visible()
    assert partitions_of(client, "payments-copy") == 1
    policy = option(client, ResourceType.TOPIC, "payments-copy", "cleanup.policy")
    assert policy.value == "compact"
    (record,) = read(cluster, "payments-copy")
    assert (record.key(), record.value()) == (b"k", b"v")


def test_a_topic_is_extended_trimmed_and_emptied(
    page: Page, cluster: Cluster, client: AdminClient
) -> None:
    """Partitions are added, records before an offset are deleted, and then all of them."""
    cluster.create_topic("trial")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(10):
        producer.produce("trial", f"{number}", partition=0)
    producer.flush(10)
    page.goto("/c/local/topics/trial")
    form = fold_out(page, "Add partitions")
    form.get_by_label("New number of partitions").fill("3")
    form.get_by_role("button", name="Add partitions").click()
    expect(page.get_by_role("status")).to_have_text("The topic has 3 partitions now.")
    assert partitions_of(client, "trial") == 3
    form = fold_out(page, "Delete records before an offset")
    form.get_by_label("First offset that stays").fill("4")
    form.get_by_role("button", name="Delete records").click()
    expect(page.get_by_role("status")).to_have_text("The records before offset 4 are deleted.")
    assert bounds(client, "trial") == (4, 10)
    assert [record.value() for record in read(cluster, "trial")] == [
        b"4",
        b"5",
        b"6",
        b"7",
        b"8",
        b"9",
    ]
    form = fold_out(page, "Empty the topic")
    form.get_by_label("Type trial to confirm").fill("trial")
    form.get_by_role("button", name="Delete all records").click()
    expect(page.get_by_role("status")).to_have_text("Topic trial is empty.")
    assert [bounds(client, "trial", number) for number in range(3)] == [(10, 10), (0, 0), (0, 0)]


def test_a_record_is_produced_with_key_headers_codec_partition_and_time(
    page: Page, cluster: Cluster, console: ConsoleServer
) -> None:
    """A consumer reads each part as it was typed."""
    cluster.create_topic("typed", partitions=2)
    page.goto("/c/local/topics/typed/produce")
    page.get_by_label("Key format").select_option("int32")
    page.get_by_label("Key", exact=True).fill("7")
    page.get_by_label("Partition").fill("1")
    page.get_by_label("Compression").select_option("zstd")
    page.get_by_label("Time (empty: now)").fill("2026-01-31T12:00")
    page.get_by_label("Value format").select_option("json")
    value = {"n": 1, "text": "ü" * 200}
    page.get_by_label("Value", exact=True).fill(json.dumps(value, indent=1, ensure_ascii=False))
    page.get_by_label("Headers").fill("trace: a:b\nempty")
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_role("status")).to_have_text(
        "The record is written to partition 1 at offset 0."
    )
    (record,) = read(cluster, "typed", 1)
    assert record.key() == b"\0\0\0\7"
    assert json.loads(record.value() or b"") == value
    assert record.headers() == [("trace", b"a:b"), ("empty", None)]
    assert record.timestamp()[1] == 1_769_860_800_000
    connection = console.console.clusters.get("local")
    (batch,) = read_batches(connection, "typed", 1, offset=0)
    assert batch.codec == "zstd"


def test_a_record_is_sent_again_unchanged_to_another_topic(page: Page, cluster: Cluster) -> None:
    """A browser changes line ends and drops the first line: the new record has the same bytes."""
    cluster.create_topic("sources", partitions=2)
    cluster.create_topic("targets", partitions=2)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    headers: list[tuple[str, str | bytes | None]] = [
        ("trace", b"1"),
        ("raw", b"\xff\x00"),
        ("none", None),
        (" a:b", b" x\r\n"),
    ]
    records = [
        (b"\x00\xff", b'\r\n{"a":\r\n 1}'),
        ("ключ\n".encode(), None),
        (None, b"\nfirst\n\nlast\n\n"),
        (b"", bytes(range(256))),
    ]
    for key, value in records:
        producer.produce("sources", value, key, headers=headers, partition=1)
    producer.flush()
    for offset in range(len(records)):
        page.goto(f"/c/local/topics/sources/messages/1/{offset}")
        page.get_by_role("link", name="Send again").click()
        page.get_by_label("To topic").fill("targets")
        page.get_by_role("button", name="Send again").click()
        expect(page.get_by_role("status")).to_have_text(
            f"The record is written to partition 1 at offset {offset}."
        )
    copies = read(cluster, "targets", 1)
    assert [(copy.key(), copy.value()) for copy in copies] == records
    assert [copy.headers() for copy in copies] == [headers] * len(records)
    page.get_by_role("link", name="1:3", exact=True).click()
    expect(page).to_have_url(re.compile("/topics/targets/messages/1/3$"))


def test_a_record_is_edited_and_sent_again_from_the_list(
    page: Page, watched: Watched, cluster: Cluster
) -> None:
    """The form has the record's values; the key chooses the partition if none is named."""
    page.goto("/c/local/topics/orders/messages?seek=oldest&limit=20")
    page.locator("#rows summary").first.click()
    page.locator("#rows").get_by_role("link", name="Send again").click()
    form = page.locator('form[method="post"]:has([name="topic"])')
    expect(form.get_by_label("To topic")).to_have_value("orders")
    expect(form.get_by_label("Value format")).to_have_value("json")
    form.get_by_label("To topic").fill("edited")
    form.get_by_label("Partition").fill("")
    form.locator('[name="value"]').fill('{"corrected": true}')
    form.locator('[name="headers"]').fill("reason: test")
    form.get_by_role("button", name="Send again").click()
    expect(form.get_by_role("alert")).to_contain_text("There is no topic 'edited'")
    # The browser logs each response that is an error.
    watched.forgive()
    cluster.create_topic("edited")
    form.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("status")).to_contain_text("partition 0 at offset 0")
    (record,) = read(cluster, "edited")
    assert (record.key() or b"").startswith(b"customer-0")
    assert record.value() == b'{"corrected": true}'
    assert record.headers() == [("reason", b"test")]


def test_templates_are_previewed_and_repeated(page: Page, cluster: Cluster) -> None:
    """The preview writes nothing; each record has its own number in key and value."""
    cluster.create_topic("repeated")
    page.goto("/c/local/topics/repeated/produce")
    page.get_by_label("Key format").select_option("text")
    page.get_by_label("Key", exact=True).fill("k{{n}}")
    page.get_by_label("Value", exact=True).fill("value {{n}} {{choice(a,b)}}")
    page.get_by_label("Number of records").fill("12")
    page.get_by_label("fill in templates").check()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="The first records")).to_be_visible()
    expect(page.locator("main pre").first).to_contain_text("value 0 ")
    assert read(cluster, "repeated") == []
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_role("status")).to_have_text("12 records are written.")
    records = read(cluster, "repeated")
    assert [record.key() for record in records] == [b"k%d" % number for number in range(12)]
    values = [(record.value() or b"").decode().split() for record in records]
    assert [(word, number) for word, number, _ in values] == [
        ("value", str(number)) for number in range(12)
    ]
    assert {choice for *_, choice in values} <= {"a", "b"}


def test_a_long_search_shows_progress_and_is_stopped(
    page: Page, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop ends the search in the console, too: the rest of the topic is not read."""
    cluster.create_topic("large")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(_LARGE_RECORDS):
        producer.produce("large", f"{number:04}".ljust(_LARGE_BYTES))
    producer.flush(20)
    page.goto("/c/local/topics/large/messages")
    page.get_by_label("Text", exact=True).first.fill("nowhere")
    # The search continues only as the test permits, one response at a time.
    permits, ended = threading.Semaphore(4), threading.Event()
    scanned = [0]
    step, search = Scan.step, messages.search

    def permitted(scan: Scan) -> Iterator[Scanned]:
        permits.acquire(timeout=_PATIENCE_S)
        yield from step(scan)

    def watched(*arguments: Any, **options: Any) -> Iterator[browsing.SearchEvent]:
        try:
            for event in search(*arguments, **options):
                scanned[0] = event.progress.scanned
                yield event
        finally:
            ended.set()

    monkeypatch.setattr(browsing, "_PROGRESS_S", 0.0)
    monkeypatch.setattr(Scan, "step", permitted)
    monkeypatch.setattr(messages, "search", watched)
    page.get_by_role("button", name="Search all records").click()
    expect(page.locator("#state")).to_contain_text("of 8,000 scanned, 0 found")
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#state")).to_have_text("stopped")
    expect(page.get_by_role("progressbar")).to_be_hidden()
    for _ in range(_LARGE_RECORDS):
        permits.release()
        if ended.wait(0.1):
            break
    assert ended.is_set()
    assert 0 < scanned[0] < _LARGE_RECORDS


def download(page: Page, link: str) -> bytes:
    """Click a link and return the file that the browser has saved."""
    with page.expect_download() as saved:
        page.get_by_role("link", name=link, exact=True).click()
    return Path(saved.value.path()).read_bytes()


def test_records_are_downloaded_as_csv_and_json(page: Page, cluster: Cluster) -> None:
    """The files have the records that a consumer reads, with quotes and commas in them."""
    records = [record for partition in (0, 1) for record in read(cluster, "orders", partition)]
    page.goto("/c/local/topics/orders/messages?seek=oldest")
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode())))
    expected = sorted((r.partition(), r.offset(), (r.value() or b"").decode()) for r in records)
    assert len(expected) == RECORDS
    assert expected == sorted(
        (int(row["partition"]), int(row["offset"]), row["value"]) for row in rows
    )
    lines = [json.loads(line) for line in download(page, "JSON").decode().splitlines()]
    assert expected == sorted((row["partition"], row["offset"], row["value"]) for row in lines)


def test_a_result_is_downloaded_as_csv_and_parquet(page: Page) -> None:
    """Both files have the rows and the types of the statement."""
    page.goto("/c/local/sql")
    page.get_by_label("Statement (DuckDB's SELECT)").fill(
        "SELECT _partition, count(*) AS n, max(_time) AS last FROM orders GROUP BY 1 ORDER BY 1"
    )
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#result tbody tr")).to_have_count(2)
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode())))
    assert [(row["_partition"], row["n"]) for row in rows] == [("0", "30"), ("1", "30")]
    table = pyarrow.parquet.read_table(io.BytesIO(download(page, "Parquet")))
    assert [(row["_partition"], row["n"]) for row in table.to_pylist()] == [(0, 30), (1, 30)]
    assert str(table.schema.field("last").type).startswith("timestamp")


def test_offsets_and_the_audit_log_are_downloaded(page: Page) -> None:
    """The export has a line for each partition, in the format of kafka-consumer-groups."""
    page.goto("/c/local/group/offsets?id=billing")
    assert download(page, "Export").decode() == "orders,0,10\norders,1,10\n"
    page.goto("/audit")
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode())))
    assert {row["user"] for row in rows} == {"admin"}


def test_a_running_application_is_shown(page: Page, application: str) -> None:
    """State, instance, lag and rate of an application that runs; its lag is drawn over time."""
    page.goto("/c/local/streams")
    row = page.get_by_role("row", name=application)
    expect(row).to_contain_text("Running")
    row.get_by_role("link").click()
    figures = page.locator("dl.figures div")
    expect(figures.filter(has_text="Instances")).to_contain_text("1")
    expect(figures.filter(has_text="Lag").first).to_contain_text("2")
    instance = page.locator("section", has=page.get_by_role("heading", name="Instances"))
    expect(instance.locator("tbody tr")).to_contain_text("active")
    expect(instance.locator("tbody tr")).to_contain_text("host-a:80")
    expect(page.locator("svg.topology")).to_contain_text("lag 2")
    charts = page.locator("figure.chart canvas")
    expect(charts).to_have_count(3)
    expect(page.locator("figure.chart .u-legend").first).to_contain_text("records/s")
