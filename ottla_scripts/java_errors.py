"""Errors as the Java client words them, for scripts that look for its sentences or exceptions."""

import re
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.brokers import CoordinatorError
from ottla.client.errors import HandshakeFailed, TimedOut, Unsupported

# The sentence for an error code whose response has no sentence.
_MESSAGES = {
    ErrorCode.OFFSET_OUT_OF_RANGE: (
        "The requested offset is not within the range of offsets maintained by the server."
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (
        "The coordinator is loading and hence can't process requests."
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "The request attempted to perform an operation on an invalid topic."
    ),
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    ErrorCode.UNSUPPORTED_VERSION: "The version of API is not supported.",
    ErrorCode.LEADER_NOT_AVAILABLE: (
        "There is no leader for this topic-partition as we are in the middle of a leadership "
        "election."
    ),
    ErrorCode.INVALID_TXN_STATE: (
        "The producer attempted a transactional operation in an invalid state."
    ),
    ErrorCode.SECURITY_DISABLED: "Security features are disabled.",
    ErrorCode.KAFKA_STORAGE_ERROR: "Disk error when trying to access log file on the disk.",
    ErrorCode.LOG_DIR_NOT_FOUND: (
        "The user-specified log directory is not found in the broker config."
    ),
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "A partition reassignment is in progress.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on "
        "delegation token authenticated channels."
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: (
        "Eligible topic partition leaders are not available."
    ),
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "No partition reassignment is in progress.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed "
        "to it."
    ),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "The throttling quota has been exceeded.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found.",
}
# Exceptions with other names than their codes.
_EXCEPTIONS = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.NETWORK_EXCEPTION: "NetworkException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
}
_ERRORS = "org.apache.kafka.common.errors"
_OTHER = "org.apache.kafka.common.KafkaException"
_LOOKUP_FORBIDDEN = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


class _Worded(NamedTuple):
    """The class of an exception, and its message; no class if Java has no such exception."""

    name: str
    message: str


def java_message(error: Exception) -> str:
    """Return the message of the Java client's exception for an error."""
    return _worded(error).message


def java_exception(error: Exception) -> str:
    """Return an error as the Java client's exception prints it."""
    name, message = _worded(error)
    return f"{name}: {message}" if name else message


def java_class(error: Exception) -> tuple[str, str]:
    """Return the class of the Java client's exception, as Java prints a class, and the message."""
    name, message = _worded(error)
    return f"class {name or _OTHER}", message


def of_records(error: OttlaError, topic: str, group: str | None = None) -> OttlaError:
    """Return the error of a producer or a consumer of a topic, as the Java client words it."""
    if isinstance(error, ApiError) and error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return ApiError(error.code, f"Not authorized to access topics: [{topic}]")
    if isinstance(error, ApiError) and error.code is ErrorCode.INVALID_TOPIC_EXCEPTION:
        return ApiError(error.code, f"Invalid topics: [{topic}]")
    if isinstance(error, ApiError) and error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return ApiError(error.code, f"Not authorized to access group: {group}")
    if (
        isinstance(error, ApiError)
        and error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    ):
        return ApiError(error.code)
    return error


def is_authentication(error: Exception) -> bool:
    """Return True if the Java client raises a subclass of AuthenticationException for an error."""
    if isinstance(error, ApiError):
        return error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    return isinstance(error, HandshakeFailed)


def at_leader(error: ApiError, topic: str, partition: int) -> ApiError:
    """Return the error of a request to the leader of a partition, as the Java client words it."""
    if error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return ApiError(
            error.code,
            f"Failed to fetch metadata for partition {topic}-{partition} due to topic "
            "authorization failure",
        )
    # Our client names the topic; Java's does not.
    return ApiError(error.code) if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error


def _worded(error: Exception) -> _Worded:
    if isinstance(error, ApiError):
        default = "".join(part.capitalize() for part in error.code.name.split("_"))
        name = _EXCEPTIONS.get(error.code, f"{default}Exception")
        return _Worded(f"{_ERRORS}.{name}", _message(error))
    if isinstance(error, Unsupported) and error.api:
        api = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.api).upper()
        return _Worded(f"{_ERRORS}.UnsupportedVersionException", f"The node does not support {api}")
    if isinstance(error, HandshakeFailed):
        return _Worded(f"{_ERRORS}.SslAuthenticationException", "SSL handshake failed")
    if isinstance(error, TimedOut):
        return _Worded(f"{_ERRORS}.TimeoutException", str(error))
    return _Worded("", str(error))


def _message(error: ApiError) -> str:
    if isinstance(error, CoordinatorError) and error.code in _LOOKUP_FORBIDDEN:
        name, kind = ("groupId", "GROUP") if error.is_group else ("transactionalId", "TRANSACTION")
        return (
            f"FindCoordinator request for {name} `CoordinatorKey(idValue='{error.key}', "
            f"type={kind})` failed due to authorization failure"
        )
    is_default = error.message == error.code.message
    return _MESSAGES.get(error.code, error.message) if is_default else error.message
