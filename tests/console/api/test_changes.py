"""Changes through the API whose success needs a running client: its transaction, its membership."""

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from ottla.base.clock import RealClock
from ottla.console.state import Console
from ottla.testing import Cluster
from tests.console.api.conftest import PASSWORD, ClientOf

pytestmark = pytest.mark.slow

_LOCAL = "/api/v1/clusters/local"
_PATIENCE_S = 20.0


def _eventually(is_so: Callable[[], bool]) -> bool:
    deadline, pause = RealClock().monotonic() + _PATIENCE_S, threading.Event()
    while not is_so():
        if RealClock().monotonic() > deadline:
            return False
        pause.wait(0.05)
    return True


def test_an_open_transaction_is_aborted_and_its_producer_fenced(
    client_of: ClientOf, cluster: Cluster, console: Console
) -> None:
    """Consumers of committed records continue behind it, and the producer cannot commit."""
    cluster.create_topic("payments")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "stuck"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("payments", b"half")
    assert producer.flush(10) == 0
    client = client_of("ada")
    path = f"{_LOCAL}/transactions/stuck"
    before = client.get(path).json()
    assert (before["state"], before["partitions"]) == ("Ongoing", [["payments", 0]])
    change = client.post(f"{path}/abort").json()
    assert change["resource"] == "stuck"
    # The coordinator has initialized the id for another producer.
    assert _eventually(lambda: client.get(path).json()["state"] == "Empty")
    after = client.get(path).json()
    assert after["producer_epoch"] > before["producer_epoch"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(10)
    read = client.post(
        f"{_LOCAL}/topics/payments/messages/search",
        json={"request": {"topic": "payments", "seek": "oldest", "is_read_committed": True}},
    )
    assert read.json()["rows"] == []
    assert "transaction.abort" in [row.action for row in console.audit.entries()]


def test_a_transaction_that_its_coordinator_knows_gets_no_abort_marker(
    client_of: ClientOf, cluster: Cluster
) -> None:
    """A marker in one of its partitions would break its atomicity: the call fails."""
    cluster.create_topic("transfers")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "known"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("transfers", b"half")
    assert producer.flush(10) == 0
    client = client_of("ada")
    (row,) = client.get(f"{_LOCAL}/topics/transfers/partitions/0").json()["producers"]
    hanging = {
        "topic": "transfers",
        "partition": 0,
        "producer_id": row["producer_id"],
        "producer_epoch": row["producer_epoch"],
        "coordinator_epoch": row["coordinator_epoch"],
        "start_offset": row["transaction_start_offset"],
        "last_timestamp_ms": row["last_timestamp_ms"],
        "age_s": 0.0,
    }
    refused = client.post(f"{_LOCAL}/hanging-transactions/abort", json={"hanging": hanging})
    assert refused.status_code == 400
    assert "does not hang" in refused.json()["error"]["message"]
    producer.commit_transaction(10)


def test_members_of_a_group_are_removed(
    client_of: ClientOf, cluster: Cluster, console: Console
) -> None:
    """The group is empty until its consumer polls again and rejoins as another member."""
    cluster.create_topic("polled")
    # The consumer learns from its next heartbeat that it is no longer a member.
    options = {"group.id": "polling", "heartbeat.interval.ms": 100}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **options})
    consumer.subscribe(["polled"])
    client = client_of("ed")
    path = f"{_LOCAL}/groups/polling"

    def members() -> list[str]:
        consumer.poll(0.05)
        result = client.get(path).json().get("members", [])
        return [row["member_id"] for row in result if row["partitions"]]

    try:
        assert _eventually(lambda: len(members()) == 1)
        (removed,) = members()
        change = client.post(f"{path}/remove-members", json={}).json()
        assert removed in change["before"]["members"]
        assert _eventually(lambda: bool(members()) and removed not in members())
        assert "group.remove-members" in [row.action for row in console.audit.entries()]
    finally:
        consumer.close()


def test_a_quota_is_set_and_removed(client_of: ClientOf, console: Console) -> None:
    """The limit is listed, and null removes it."""
    client = client_of("ada")
    quotas = f"{_LOCAL}/quotas"
    body = {"entity": {"user": "ann"}, "limits": {"producer_byte_rate": 1024.0}}
    assert client.patch(quotas, json=body).json()["after"] == {"producer_byte_rate": "1024.0"}
    rows = client.get(quotas).json()["items"]
    assert rows == [{"entity": {"user": "ann"}, "limits": {"producer_byte_rate": 1024.0}}]
    body["limits"] = {"producer_byte_rate": None}
    assert client.patch(quotas, json=body).json()["before"] == {"producer_byte_rate": "1024.0"}
    assert client.get(quotas).json()["items"] == []
    assert "quota.alter" in [row.action for row in console.audit.entries()]


def test_failed_change_with_line_ends_in_its_name_is_one_line(
    console: Console, client_of: ClientOf
) -> None:
    """The name is in the error; the download of the log has a line for each row."""
    name = "bad\n2026-01-01 00:00:00.000Z,admin,10.0.0.1,,login,,{},ok\u0085x"
    body = {"topic": {"name": name}}
    response = client_of("ed").post("/api/v1/clusters/local/topics", json=body)
    assert 400 <= response.status_code < 500
    entry = console.audit.entries(limit=1)[0]
    assert (entry.user, entry.action) == ("ed", "create_topic")
    assert "\\u000a2026-01-01" in entry.result
    client = client_of("")
    client.post("/login", data={"user": name, "password": "x"})
    client.post("/login", data={"user": "ada", "password": PASSWORD})
    lines = client.get("/audit.csv").text.splitlines()
    client.cookies.clear()
    assert len(lines) == 1 + len(console.audit.entries(limit=1000))
    assert not any(line.startswith("2026-01-01 00:00:00.000Z,admin") for line in lines)
