"""Topics that do not exist yet: Apache Kafka's consumers wait for them, and create them.

librdkafka's consumer ends with an error instead, and notices a later topic after minutes.
"""

import time
from collections.abc import Callable, Mapping

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.brokers import Brokers
from ottla.client.security.options import security_of
from ottla.client.transport import TopicPartition

_PAUSE_S = 0.1
# librdkafka's group consumer reports them as a topic that does not exist, or not at all.
_FINAL = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)
_MAY_CREATE = "allow.auto.create.topics"


def await_topic(
    brokers: Brokers, name: str, properties: Mapping[str, str], goes_on: Callable[[], bool]
) -> tuple[list[TopicPartition], bool]:
    """Return the partitions of a topic once it exists, and True if it did not exist at first.

    The brokers create it, unless `allow.auto.create.topics` is false here or
    `auto.create.topics.enable` there. There are no partitions if `goes_on` returned False before.
    """
    may_create = properties.get(_MAY_CREATE, "true").strip().lower() != "false"
    is_new = False
    while goes_on():
        try:
            creates = may_create and is_new
            topic = brokers.retry(lambda: brokers.topic(name, creates=creates))  # noqa: B023
        except ApiError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            if is_new:
                time.sleep(_PAUSE_S)
            is_new = True
            continue
        return [(name, row.partition_index) for row in topic.partitions], is_new
    return [], is_new


def await_topic_of_group(
    bootstrap: str, name: str, properties: Mapping[str, str], goes_on: Callable[[], bool]
) -> bool:
    """Wait for a topic before a member subscribes to it; False if `goes_on` returned False.

    ApiError if the user may not see it, or if its name is invalid. The member itself reports other
    errors, and waits for a broker that cannot be reached.
    """
    try:
        with Brokers(
            bootstrap,
            client_id=properties.get("client.id", "consumer"),
            security=security_of(properties),
        ) as brokers:
            partitions, _ = await_topic(brokers, name, properties, goes_on)
    except OttlaError as error:
        # As in Java, where the group is looked up later.
        if isinstance(error, ApiError) and error.code in _FINAL:
            raise
        return True
    return bool(partitions)
