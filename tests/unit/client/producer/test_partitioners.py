"""Partitioners and the partitions that they see."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.errors import ClientError
from ottla.client.producer import partitioners
from ottla.client.producer.partitioners import (
    RoundRobin,
    Topology,
    checked,
    murmur2_partition,
    partitioner_from,
)


def test_partitions_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked up again after five minutes, so that new partitions are used."""
    now = [0.0]
    monkeypatch.setattr(partitioners, "time", SimpleNamespace(monotonic=lambda: now[0]))
    calls: list[str] = []

    def look_up(topic: str) -> list[int]:
        calls.append(topic)
        return [2, 0, 1]

    topology = Topology(look_up)
    assert not topology.is_known("t")
    assert topology.partitions("t") == topology.partitions("t") == [0, 1, 2]
    assert calls == ["t"]
    now[0] = 301.0
    topology.partitions("t")
    assert calls == ["t", "t"]


def test_new_topic_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster confirms a topic that it creates on demand a moment later; at most five seconds."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(partitioners, "time", clock)

    def look_up(topic: str) -> list[int]:
        if topic == "never" or now[0] < 1:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return [0]

    assert Topology(look_up).partitions("soon") == [0]
    begin = now[0]
    with pytest.raises(ApiError):
        Topology(look_up).partitions("never")
    assert 5 <= now[0] - begin < 6


def test_each_topic_has_turns_of_its_own() -> None:
    """Round robin starts at the first partition of each topic."""
    partitioner, topology = RoundRobin(), Topology(lambda topic: [0, 1])
    turns = [partitioner.partition(topic, None, None, None, None, topology) for topic in "aabab"]
    assert turns == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("key", "partition"), [(b"21", 0), (b"foobar", 0), (b"a-little-bit-long-string", 0)]
)
def test_murmur2_of_one_partition(key: bytes, partition: int) -> None:
    """Every key is in the only partition."""
    assert murmur2_partition(key, [0]) == partition


@pytest.mark.parametrize("choice", [-1, 3, None, "0"])
def test_wrong_choices_are_refused(choice: Any) -> None:
    """A partitioner must return one of the partitions."""
    with pytest.raises(ClientError, match="the partitioner returned"):
        checked(choice, "t", [0, 1, 2])


def test_partitioner_is_a_function_or_an_object() -> None:
    """Other values are refused; built-in ones of librdkafka need no object."""
    assert partitioner_from("murmur2", {}) is None
    assert partitioner_from(None, {}) is None
    with pytest.raises(ConfigError, match="a partitioner is a function"):
        partitioner_from(7, {})
