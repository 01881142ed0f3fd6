"""Retry topics: a failing record is tried again after each delay, then it is a dead letter."""

import time
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.client import ConsumerRecord, Producer, RetryingConsumer
from ottla.client.consumer.retries import ATTEMPT, DUE, ERROR, ORIGIN, RetryPlan
from ottla.client.errors import Closed, CommitFailed
from ottla.testing import Cluster
from tests.client.test_consumer import consumer_of, read

pytestmark = pytest.mark.slow


def test_failing_record_waits_and_becomes_a_dead_letter(cluster: Cluster, topic: str) -> None:
    """Records behind it are handled at once; nothing is tried before its time."""
    now = [1_000_000]
    handled: list[tuple[int, bytes]] = []

    def handle(record: ConsumerRecord) -> None:
        handled.append((now[0], record.value))
        if record.value == b"bad":
            raise ValueError("no")

    for name in (f"{topic}-retry-1", f"{topic}-retry-2", f"{topic}-dlt"):
        cluster.create_topic(name)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for value in (b"bad", b"good"):
            producer.send(topic, value, key=b"k", headers=[("own", b"1")], partition=0)
    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    retrying = RetryingConsumer(
        topic, handle, delays_s=[10, 60], clock_ms=lambda: now[0], **settings
    )
    deadline = time.monotonic() + 30

    def step_until(count: int) -> None:
        while len(handled) < count:
            assert time.monotonic() < deadline
            retrying.step()

    step_until(2)
    for _ in range(5):
        retrying.step()
    assert handled == [(1_000_000, b"bad"), (1_000_000, b"good")]
    now[0] += 10_000
    step_until(3)
    now[0] += 59_999
    for _ in range(5):
        retrying.step()
    assert len(handled) == 3
    now[0] += 1
    step_until(4)
    retrying.stop()
    retrying.run()
    with consumer_of(cluster) as consumer:
        consumer.assign([(f"{topic}-dlt", 0)])
        (dead,) = read(consumer, 1)
    assert (dead.key, dead.value) == (b"k", b"bad")
    assert dict(dead.headers) == {
        "own": b"1",
        ATTEMPT: b"3",
        ORIGIN: f"{topic}-0@0".encode(),
        ERROR: b"ValueError: no",
    }
    assert dead.header(DUE) is None


def test_retry_topics_are_created_before_the_consumer_subscribes(
    cluster: Cluster, topic: str
) -> None:
    """A topic that is created after the subscription would be found minutes later."""
    handled: list[str] = []

    def handle(record: ConsumerRecord) -> None:
        handled.append(record.topic)
        raise ValueError("no")

    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"bad")
    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    retrying = RetryingConsumer(topic, handle, delays_s=[0, 0], **settings)
    deadline = time.monotonic() + 30
    while len(handled) < 3:
        assert time.monotonic() < deadline
        retrying.step()
    retrying.stop()
    retrying.run()
    assert handled == [topic, f"{topic}-retry-1", f"{topic}-retry-2"]


def test_crash_between_copy_and_commit_repeats_the_record(cluster: Cluster, topic: str) -> None:
    """At least once: a process that dies after the copy, before the commit, makes a second copy."""
    for name in (f"{topic}-retry-1", f"{topic}-dlt"):
        cluster.create_topic(name)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"bad", partition=0)
    attempts: list[str] = []

    def handle(record: ConsumerRecord) -> None:
        attempts.append(record.topic)
        raise ValueError("no")

    def crash(record: ConsumerRecord) -> None:
        raise SystemExit("killed")

    words = {"bootstrap_servers": cluster.bootstrap, "group_id": topic, "delays_s": [0]}
    dying = RetryingConsumer(topic, handle, **words)
    dying._consumer.commit = crash  # type: ignore[assignment, method-assign]
    with pytest.raises(SystemExit):
        dying.run()
    survivor = RetryingConsumer(topic, handle, **words)
    deadline = time.monotonic() + 30
    while len(attempts) < 4:
        assert time.monotonic() < deadline
        survivor.step()
    survivor.stop()
    survivor.run()
    assert attempts.count(topic) == 2
    with consumer_of(cluster) as consumer:
        consumer.assign([(f"{topic}-dlt", 0)])
        dead = read(consumer, 2)
    assert {record.header(ORIGIN) for record in dead} == {f"{topic}-0@0".encode()}


def test_dead_letter_that_is_copied_back_has_all_its_attempts(cluster: Cluster, topic: str) -> None:
    """A record of the main topic begins again, whatever its headers say; it keeps its origin."""
    headers = [("own", b"1"), (ATTEMPT, b"3"), (ORIGIN, b"orders-0@7"), (ERROR, b"ValueError: no")]
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"bad", headers=headers, partition=0)
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])
        (record,) = read(consumer, 1)
    plan = RetryPlan(topic, [10, 60])
    target, again = plan.failed(record, ValueError("still"), 0)
    assert (target, plan.due_ms(record)) == (f"{topic}-retry-1", 0)
    assert dict(again) == {
        "own": b"1",
        ATTEMPT: b"1",
        ORIGIN: b"orders-0@7",
        ERROR: b"ValueError: still",
        DUE: b"10000",
    }


def test_plan_needs_delays() -> None:
    """A plan without delays would be a dead-letter topic alone: the error asks for numbers."""
    with pytest.raises(ConfigError, match="at least one number of seconds"):
        RetryPlan("t", [])
    assert RetryPlan("t", [1, 2]).topics() == ["t", "t-retry-1", "t-retry-2"]


def test_settings_come_from_a_file_for_both_clients(
    cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """Serializers, interceptors and transactions of the file do not apply to the copies."""
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={cluster.bootstrap}\n"
        "group.id=from-the-file\n"
        "acks=all\n"
        "transactional.id=payments\n"
        "value.serializer=org.apache.kafka.common.serialization.LongSerializer\n"
    )
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"text", partition=0)
    retrying = RetryingConsumer(topic, failing, delays_s=[0], config=file)
    deadline = time.monotonic() + 30
    while not retrying.step():
        assert time.monotonic() < deadline
    retrying.stop()
    retrying.run()
    with consumer_of(cluster) as consumer:
        consumer.assign([(f"{topic}-retry-1", 0)])
        assert [record.value for record in read(consumer, 1)] == [b"text"]


def failing(record: ConsumerRecord) -> None:
    """Fail, as a handler may."""
    raise ValueError("no")


def test_a_record_whose_commit_fails_is_no_end(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The member joins again, and the next owner handles the record again."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"x", partition=0)
    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    retrying = RetryingConsumer(topic, lambda _: None, delays_s=[10], **settings)

    def fail(record: ConsumerRecord) -> None:
        raise CommitFailed("the member is no longer in its group")

    monkeypatch.setattr(retrying._consumer, "commit", fail)
    deadline = time.monotonic() + 30
    while not retrying.step():
        assert time.monotonic() < deadline
    assert "offset 0 of" in caplog.text
    retrying.stop()
    retrying.run()


def test_run_after_stop_is_refused(cluster: Cluster, topic: str) -> None:
    """The consumer is closed: it would handle nothing, and say nothing."""
    handled: list[bytes] = []

    def handle(record: ConsumerRecord) -> None:
        handled.append(record.value)
        retrying.stop()

    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"x")
    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    retrying = RetryingConsumer(topic, handle, delays_s=[10], **settings)
    retrying.run()
    with pytest.raises(Closed, match="is closed: create a new one"):
        retrying.run()
    assert handled == [b"x"]
