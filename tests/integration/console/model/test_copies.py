"""Copies of topics by the console: the same loop as `ottla topic copy`, without a stored position."""

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin import configs
from ottla.client.admin import topics as admin
from ottla.client.errors import TimedOut
from ottla.client.producer.producer import Producer
from ottla.client.raw.consumer import RecordConsumer
from ottla.console.model.messages.masking import MaskedTopic
from ottla.operations.mirror import copying, once
from ottla.operations.mirror.once import RecordCopy, copy_topic
from ottla.operations.survey.connections import ClusterConnection, ClusterUnavailable
from ottla.testing import Cluster
from tests.integration.tools.test_mirror import records_of

_OPTIONS = {
    "min.insync.replicas": "2",
    "message.timestamp.type": "LogAppendTime",
    "leader.replication.throttled.replicas": "0:1",
    "retention.ms": "-1",
}
_ALL = RecordCopy(lambda _: None, lambda: None)


def _overrides(connection: ClusterConnection, topic: str) -> Mapping[str, str | None]:
    with connection.brokers() as brokers:
        resource = configs.Resource(configs.ResourceType.TOPIC, topic)
        rows = configs.describe_config(brokers, resource)
    own = configs.ConfigSource.DYNAMIC_TOPIC_CONFIG
    return {row.name: row.value for row in rows if row.source == own}


def _names(connection: ClusterConnection) -> set[str]:
    with connection.brokers() as brokers:
        return {row.name for row in admin.list_topics(brokers)}


def test_records_are_copied_as_they_are(
    connection: ClusterConnection, cluster: Cluster, topic: str
) -> None:
    """Null keys and values, repeated headers and timestamps are kept, and no position is stored."""
    cluster.create_topic(topic, partitions=2)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        headers = [("h", b"\xff"), ("h", None), ("", b"")]
        producer.send(topic, b"\x00\xff", key=b"k", headers=headers, partition=0, timestamp=5)
        producer.send(topic, None, key=b"gone", partition=1, timestamp=9)
        producer.send(topic, b"", key=None, partition=1, timestamp=7)
    progress: list[int] = []
    change = copy_topic(connection, topic, f"{topic}-2", RecordCopy(lambda _: None, lambda: None, progress.append))  # fmt: skip
    assert change.notes == (f"copied from {topic}", "3 records")
    assert sum(progress) == 3
    for number in (0, 1):
        rows = [row._replace(topic="") for row in records_of(cluster, f"{topic}-2", number)]
        assert rows == [row._replace(topic="") for row in records_of(cluster, topic, number)]
    assert {name for name in _names(connection) if name.startswith(topic)} == {topic, f"{topic}-2"}


def test_options_suit_the_copy(connection: ClusterConnection, cluster: Cluster, topic: str) -> None:
    """A copy with records keeps their timestamps; throttles name partitions of the source."""
    cluster.create_topic(topic, replication_factor=2, config=_OPTIONS)
    copy_topic(connection, topic, f"{topic}-empty")
    copy_topic(connection, topic, f"{topic}-full", _ALL)
    kept = {"min.insync.replicas": "2", "retention.ms": "-1"}
    assert _overrides(connection, f"{topic}-full") == kept
    assert _overrides(connection, f"{topic}-empty") == {**kept, "message.timestamp.type": "LogAppendTime"}  # fmt: skip


def test_refused_copies_leave_no_topic(
    connection: ClusterConnection, cluster: Cluster, topic: str
) -> None:
    """Masked records, the topic itself and an existing target are refused."""

    def forbid(name: str) -> None:
        raise MaskedTopic(f"{name} is masked")

    cluster.create_topic(topic)
    with pytest.raises(MaskedTopic):
        copy_topic(connection, topic, f"{topic}-2", RecordCopy(forbid, lambda: None))
    with pytest.raises(ConfigError, match="choose another name"):
        copy_topic(connection, topic, topic, _ALL)
    assert f"{topic}-2" not in _names(connection)
    copy_topic(connection, topic, f"{topic}-2")
    with pytest.raises(ApiError) as error:
        copy_topic(connection, topic, f"{topic}-2", _ALL)
    assert error.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_cancelled_copy_says_so(
    connection: ClusterConnection, cluster: Cluster, topic: str
) -> None:
    """The note has the number of the records that were copied before."""
    cluster.create_topic(topic)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"1")
    stopped = RecordCopy(lambda _: None, lambda: None, cancelled=lambda: True)
    assert copy_topic(connection, topic, f"{topic}-2", stopped).notes[1] == "0 records, cancelled"


def test_copy_does_not_wait_for_a_silent_leader(
    connection: ClusterConnection, cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page has no Ctrl-C: the copy fails if brokers send nothing for the console's timeout."""

    class Silent(RecordConsumer):
        def poll(self, timeout_s: float, *, limit: int = 1) -> list[Any]:
            return []

    cluster.create_topic(topic)
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, b"1")
    monkeypatch.setattr(copying, "RecordConsumer", Silent)
    monkeypatch.setattr(once, "_patience_s", lambda _: 0.01)
    with pytest.raises(ClusterUnavailable, match="no record arrived") as error:
        copy_topic(connection, topic, f"{topic}-2", _ALL)
    assert isinstance(error.value.__cause__, TimedOut)
