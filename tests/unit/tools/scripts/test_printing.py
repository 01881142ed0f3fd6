"""Values and errors as Apache Kafka's tools print them."""

import pytest

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin.answers import check
from ottla.client.errors import Unsupported
from ottla.tools.scripts.printing import java_exception, java_message

_PREFIX = "org.apache.kafka.common.errors."


def _error(code: ErrorCode, message: str | None = None) -> ApiError:
    with pytest.raises(ApiError) as caught:
        check(code, message, subject="Group 'g'")
    return caught.value


def test_message_of_the_broker_is_printed_without_the_subject() -> None:
    """The subject is in the text of the error, for other tools."""
    error = _error(ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")
    assert str(error) == "Group 'g': Group g not found."
    assert java_exception(error) == f"{_PREFIX}GroupIdNotFoundException: Group g not found."


def test_error_without_a_message_has_that_of_the_java_client() -> None:
    """Some exceptions of the Java client have other names than the codes."""
    error = _error(ErrorCode.NON_EMPTY_GROUP)
    assert java_exception(error) == f"{_PREFIX}GroupNotEmptyException: The group is not empty."
    assert java_message(_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)) == (
        "This server does not host this topic-partition."
    )


def test_api_that_a_broker_does_not_serve_is_named() -> None:
    """The name is that of Kafka's table of APIs."""
    error = Unsupported("The broker does not offer it.", api="StreamsGroupDescribe")
    sentence = "The node does not support STREAMS_GROUP_DESCRIBE"
    assert java_exception(error) == f"{_PREFIX}UnsupportedVersionException: {sentence}"
    assert java_message(OttlaError("No broker responds.")) == "No broker responds."
