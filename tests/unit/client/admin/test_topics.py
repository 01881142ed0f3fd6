"""Topics: list, describe, create, extend and delete them."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.wire.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse


def test_topics_are_listed_by_name(brokers: Brokers) -> None:
    """Internal topics are included and marked."""
    listed = topics.list_topics(brokers)
    assert [(topic.name, topic.is_internal) for topic in listed] == [("__x", True), ("t", False)]


def test_a_topic_is_described_with_its_partitions_in_order(brokers: Brokers) -> None:
    """The broker may return the partitions in any order."""
    topic = topics.describe_topic(brokers, "t")
    assert [row.partition for row in topic.partitions] == [0, 1]
    assert topic.partitions[0].leader_epoch == 5
    assert topic.replication_factor == 1


def test_creation_uses_the_brokers_defaults(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """A value of -1 requests the broker's default, and the response has the value used."""
    cluster.answers["CreateTopics"] = lambda request: CreateTopicsResponse(
        topics=[CreatableTopicResult(name="n", num_partitions=4, replication_factor=1)]
    )
    created = topics.create_topic(brokers, "n", config={"retention.ms": "1"})
    (sent,) = asked("CreateTopics").topics
    assert (sent.num_partitions, sent.replication_factor) == (-1, -1)
    assert [(row.name, row.value) for row in sent.configs] == [("retention.ms", "1")]
    assert (created.partitions, created.replication_factor) == (4, 1)


def test_error_of_a_creation_has_the_brokers_message(cluster: Any, brokers: Brokers) -> None:
    """The error has the broker's own message."""
    cluster.answers["CreateTopics"] = lambda request: CreateTopicsResponse(
        topics=[CreatableTopicResult(name="n", error_code=17, error_message="bad name")]
    )
    with pytest.raises(ApiError, match="bad name") as caught:
        topics.create_topic(brokers, "n")
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_creation_waits_for_a_controller(cluster: Any, brokers: Brokers) -> None:
    """The error NOT_CONTROLLER is retried."""
    codes = iter([41, 0])
    cluster.answers["CreateTopics"] = lambda request: CreateTopicsResponse(
        topics=[CreatableTopicResult(name="n", error_code=next(codes))]
    )
    topics.create_topic(brokers, "n")
    assert cluster.names().count("CreateTopics") == 2


def test_partitions_are_added_up_to_a_total(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The request CreatePartitions has the new total, not the difference."""
    cluster.answers["CreatePartitions"] = lambda request: CreatePartitionsResponse(
        results=[CreatePartitionsTopicResult(name="t")]
    )
    topics.create_partitions(brokers, "t", 6)
    assert asked("CreatePartitions").topics[0].count == 6


def test_deletion_names_the_missing_topic(cluster: Any, brokers: Brokers) -> None:
    """The response has no message before version 5."""
    cluster.answers["DeleteTopics"] = lambda request: DeleteTopicsResponse(
        responses=[DeletableTopicResult(name=request.topic_names[0], error_code=3)]
    )
    with pytest.raises(ApiError, match="Topic 'n'"):
        topics.delete_topic(brokers, "n")
