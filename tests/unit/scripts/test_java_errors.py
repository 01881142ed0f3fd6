"""Errors as Apache Kafka's tools print them."""

import pytest

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin.answers import check
from ottla.client.brokers import CoordinatorError
from ottla.client.errors import HandshakeFailed, Unsupported
from ottla.client.security.refusals import refused_login
from ottla_scripts.java_errors import at_leader, java_exception, java_message

pytestmark = pytest.mark.slow

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
    """The name comes from Kafka's table of APIs."""
    error = Unsupported("The broker does not offer it.", api="StreamsGroupDescribe")
    sentence = "The node does not support STREAMS_GROUP_DESCRIBE"
    assert java_exception(error) == f"{_PREFIX}UnsupportedVersionException: {sentence}"
    assert java_message(OttlaError("No broker responds.")) == "No broker responds."


def test_refused_login_is_the_brokers_reason() -> None:
    """Our other tools name the address, too."""
    error = refused_login("h:9", "No")
    assert str(error) == "h:9 refuses the user: No"
    assert java_exception(error) == f"{_PREFIX}SaslAuthenticationException: No"


def test_failed_handshake_has_the_sentence_of_the_java_client() -> None:
    """The reason is in the log of both."""
    error = HandshakeFailed("h:9 cannot be reached with TLS: self-signed certificate")
    assert java_exception(error) == f"{_PREFIX}SslAuthenticationException: SSL handshake failed"


@pytest.mark.parametrize(
    ("code", "is_group", "sentence"),
    [
        (
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            True,
            "GroupAuthorizationException: FindCoordinator request for groupId "
            "`CoordinatorKey(idValue='x', type=GROUP)` failed due to authorization failure",
        ),
        (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            False,
            "TransactionalIdAuthorizationException: FindCoordinator request for transactionalId "
            "`CoordinatorKey(idValue='x', type=TRANSACTION)` failed due to authorization failure",
        ),
        (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            True,
            "CoordinatorNotAvailableException: The coordinator is not available.",
        ),
    ],
)
def test_lookup_of_a_coordinator_that_is_forbidden_is_named(
    code: ErrorCode, is_group: bool, sentence: str
) -> None:
    """Other errors of a lookup have the sentence of their code."""
    error = CoordinatorError(code, None, "x", is_group=is_group)
    assert java_exception(error) == f"{_PREFIX}{sentence}"


def test_leader_of_a_forbidden_topic_is_not_found() -> None:
    """The sentence names the partition; the sentence of a topic that does not exist names nothing."""
    forbidden = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert java_message(at_leader(forbidden, "t", 3)) == (
        "Failed to fetch metadata for partition t-3 due to topic authorization failure"
    )
    missing = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no topic 't'.")
    assert java_message(at_leader(missing, "t", 3)) == (
        "This server does not host this topic-partition."
    )
