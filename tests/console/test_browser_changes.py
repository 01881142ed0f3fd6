"""Changes in Chromium: alerts are edited, and transactions are aborted."""

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Browser, Page, expect

from ottla.base.clock import RealClock
from ottla.client.brokers import Brokers
from ottla.cluster.options.authorization_options import AUTHORIZER
from ottla.console.model.log_inspector import inspect
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch
from tests.console.chromium import admin_page, without_errors
from tests.console.session import PASSWORD

# Seconds: only a browser runs the scripts and sends the forms as users do.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

# The last version of Produce that does not add its partitions to the transaction.
_NOT_ADDING = 11


def test_a_rule_and_a_channel_are_edited(page: Page, console: ConsoleServer) -> None:
    """The forms have the values of before; a wrong limit is reported, and the form stays filled."""
    page.goto("/alerts")
    page.locator("summary", has_text="Add a rule").click()
    page.get_by_label("Name", exact=True).first.fill("Late")
    page.get_by_label("Limit").fill("100")
    page.get_by_role("button", name="Add", exact=True).first.click()
    expect(page.get_by_role("status")).to_have_text("The rule Late is added.")
    page.get_by_role("link", name="Edit").first.click()
    expect(page.get_by_role("heading", name="Edit the rule Late")).to_be_visible()
    limit = page.get_by_label("Limit")
    expect(limit).to_have_value("100")
    limit.fill("20")
    page.get_by_label("Fires on").select_option("lag-seconds")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("The rule Late is changed.")
    expect(page.get_by_role("row", name="Late")).to_contain_text("> 20 seconds")
    page.locator("summary", has_text="Add a channel").click()
    page.get_by_label("Name", exact=True).last.fill("hook")
    page.get_by_label("URL").fill("https://hooks.example/secret")
    page.get_by_role("button", name="Add", exact=True).last.click()
    expect(page.get_by_role("status")).to_have_text("The channel hook is added.")
    page.get_by_role("row", name="hook").get_by_role("link", name="Edit").click()
    page.get_by_label("Name", exact=True).last.fill("team")
    expect(page.get_by_label("URL")).to_have_value("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("The channel team is changed.")
    store = console.console.alerts.store
    (row,) = store.channels()
    assert store.channel(row.id).url == "https://hooks.example/secret"
    page.goto("/audit")
    expect(page.locator("tbody")).to_contain_text("alert-rule.change")


def test_the_open_transaction_of_a_stopped_producer_is_aborted(
    page: Page, cluster: Cluster
) -> None:
    """The button works after the id is typed, and the audit log has the abort."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "stopped"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("payments", b"half")
    producer.flush(10)
    del producer
    page.goto("/c/local/transactions?open=1")
    page.get_by_role("link", name="stopped").click()
    expect(page.locator(".head")).to_contain_text("Ongoing")
    page.locator("summary", has_text="Abort the transaction").click()
    button = page.get_by_role("button", name="Abort", exact=True)
    expect(button).to_be_disabled()
    page.get_by_label("Type stopped to confirm").fill("stopped")
    button.click()
    expect(page.get_by_role("status")).to_have_text("The transaction of stopped is aborted.")
    expect(page.locator(".head")).not_to_contain_text("Ongoing")
    page.goto("/audit")
    expect(page.locator("tbody tr").first).to_contain_text("transaction.abort")


def test_a_hanging_transaction_is_found_and_aborted(browser: Browser) -> None:
    """The partition has a transaction that its coordinator does not know; readers wait behind it.

    Only a broker that does not verify transactions accepts such a write, as those before KIP-890.
    """
    options = {
        "transaction.partition.verification.enable": "false",
        # Only an authorizer knows an administrator, who may write markers.
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }
    with Cluster(options=options) as cluster:
        cluster.create_topic("payments")
        hang(cluster, "payments")
        settings = ClusterSettings("local", cluster.bootstrap)
        connection = ClusterConnection(settings)
        assert inspect(connection, "payments", 0).last_stable_offset == 0
        server = ConsoleServer(
            ConsoleSettings((settings,), ":memory:", port=0, first_password=PASSWORD)
        )
        server.start()
        try:
            with admin_page(browser, server.url) as watched, without_errors(watched) as page:
                page.goto("/c/local/transactions")
                page.get_by_label("look for hanging ones").check()
                page.get_by_label("Hanging after (s)").fill("0")
                page.get_by_role("button", name="Show").click()
                expect(page.get_by_role("cell", name="payments-0")).to_be_visible()
                watched.picture("transaction-hanging", is_dark=True)
                page.get_by_role("button", name="Abort").click()
                status = page.get_by_role("status")
                expect(status).to_have_text("The hanging transaction is aborted.")
                expect(page.get_by_text("No transaction hangs.")).to_be_visible()
                page.goto("/audit")
                first = page.locator("tbody tr").first
                expect(first).to_contain_text("transaction.abort-hanging")
        finally:
            server.stop()
        # The marker is the second record.
        assert inspect(connection, "payments", 0).last_stable_offset == 2
        connection.close()


def hang(cluster: Cluster, topic: str) -> None:
    """Write a record in a transaction that the coordinator does not know."""
    with Brokers(cluster.bootstrap, timeout_s=10) as brokers:
        start = InitProducerIdRequest(transactional_id="lost", transaction_timeout_ms=60_000)
        producer = brokers.retry(
            lambda: brokers.ask_transaction_coordinator("lost", start, InitProducerIdResponse)
        )
        assert producer.error_code == 0
        data = encode_batch(
            [Record(None, b"half")],
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            transactional=True,
            timestamp=RealClock().time_ms(),
        )
        rows = [
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=data)]
            )
        ]
        request = ProduceRequest(
            transactional_id="lost", acks=-1, timeout_ms=10_000, topic_data=rows
        )
        response = brokers.ask_node(1, request, ProduceResponse, max_version=_NOT_ADDING)
        assert response.responses[0].partition_responses[0].error_code == 0
