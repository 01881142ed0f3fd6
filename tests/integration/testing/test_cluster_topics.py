"""Topics, records and groups that a test arranges and asserts, and the fixtures of the plugin."""

from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Consumer

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client.admin.records import delete_records
from ottla.testing import Cluster
from ottla.testing.option_values import OptionValue, option_texts


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster that the tests share; each has topics of its own."""
    with Cluster(options={"num.partitions": 3, "auto.create.topics.enable": False}) as running:
        yield running


def test_options_may_be_numbers_and_booleans(cluster: Cluster) -> None:
    """They become the texts of a properties file; other types are rejected by name."""
    assert cluster.options["num.partitions"] == "3"
    assert cluster.options["auto.create.topics.enable"] == "false"
    values: dict[str, OptionValue] = {"a": True, "b": 0.5, "c": "x"}
    assert option_texts(values) == {"a": "true", "b": "0.5", "c": "x"}
    with pytest.raises(ConfigError, match=r"option 'a' is \[1\]: write a text, a number or"):
        option_texts({"a": [1]})  # type: ignore[dict-item]
    cluster.create_topic("short", config={"retention.ms": 60_000})
    with pytest.raises(ApiError) as refusal:
        cluster.produce("unknown", b"1")
    assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_records_of_a_topic(cluster: Cluster) -> None:
    """Keys choose the partition, texts are UTF-8, and a value may be null."""
    cluster.create_topic("orders", partitions=2)
    cluster.produce("orders", ("anna", "4 apples"), ("anna", None), headers=[("trace", b"7")])
    cluster.produce("orders", b"x", partition=1)
    records = cluster.records("orders", count=3)
    of_anna = [record for record in records if record.key == b"anna"]
    assert [record.value for record in of_anna] == [b"4 apples", None]
    assert len({record.partition for record in of_anna}) == 1
    assert of_anna[0].headers == [("trace", b"7")]
    assert [record.value for record in records if record.key is None] == [b"x"]
    with pytest.raises(OttlaError, match=r"orders has [0-3] records after 0\.2 s, not 4"):
        cluster.records("orders", count=4, timeout_seconds=0.2)


def test_records_begin_at_the_first_one_that_is_left(cluster: Cluster) -> None:
    """Deleted records are not waited for, and hide none of their partition."""
    cluster.create_topic("trimmed", partitions=2)
    cluster.produce("trimmed", *(str(number) for number in range(6)))
    with cluster.admin() as brokers:
        delete_records(brokers, {("trimmed", 0): 2})
    records = cluster.records("trimmed")
    assert [(record.partition, record.value) for record in records] == [
        *((0, b"4"), (1, b"1"), (1, b"3"), (1, b"5"))
    ]


def test_empty_topic_has_no_records(cluster: Cluster) -> None:
    """Reading to the end does not wait for the timeout."""
    cluster.create_topic("empty", partitions=2)
    assert cluster.records("empty") == []


def test_a_deleted_topic_can_be_created_again(cluster: Cluster) -> None:
    """`delete_topic` returns when the name is free, and the records are gone."""
    cluster.create_topic("again")
    cluster.produce("again", b"1")
    cluster.delete_topic("again")
    assert "again" not in cluster.topics()
    cluster.create_topic("again")
    assert cluster.records("again") == []


def test_wait_for_a_group(cluster: Cluster) -> None:
    """A group is stable when its member has its partitions, and caught up when it has committed."""
    cluster.create_topic("read", partitions=2)
    cluster.produce("read", *[f"{number}" for number in range(4)])
    settings = {"group.id": "shop", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    consumer.subscribe(["read"])
    assert len(consumer.consume(4, timeout=20)) == 4
    group = cluster.wait_for_group("shop")
    assert group.members[0].assignment == (("read", 0), ("read", 1))
    consumer.commit(asynchronous=False)
    assert cluster.wait_for_group("shop", is_caught_up=True).state == "Stable"
    with pytest.raises(OttlaError, match="'shop' is not stable with 2 members"):
        cluster.wait_for_group("shop", members=2, timeout_seconds=0.1)
    consumer.close()
    assert cluster.wait_for_group("shop", members=0, is_caught_up=True).state == "Empty"


@pytest.fixture(scope="session")
def ottla_session_options() -> Mapping[str, OptionValue]:
    """Topics have two partitions by default."""
    return {"num.partitions": 2}


def test_a_topic_of_the_session_has_the_name_of_the_test(
    ottla_session: Cluster, ottla_topic: str
) -> None:
    """A test finds its topic empty."""
    assert ottla_topic == "test-a-topic-of-the-session-has-the-name-of-the-test-1"
    assert ottla_session.records(ottla_topic) == []
    ottla_session.produce(ottla_topic, b"1")
    assert ottla_session.options["num.partitions"] == "2"


@pytest.mark.parametrize("value", ["ä/ö", "x"])
def test_topics_of_parametrized_tests_are_separate(
    ottla_session: Cluster, ottla_topic: str, value: str
) -> None:
    """Names of tests may have characters that names of topics cannot have."""
    ottla_session.produce(ottla_topic, value)
    assert [record.value for record in ottla_session.records(ottla_topic)] == [value.encode()]
    assert [name for name in ottla_session.topics() if "separate" in name] == [ottla_topic]
