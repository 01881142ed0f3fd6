"""The error table, and the four kinds of error with their consequences.

==================  ============================================================= `ApiError`
becomes the code in the response, as near the cause as possible `ProtocolError`     closes that
connection and nothing else `StorageError`      takes that log directory offline `AssertionError`
a broken invariant: fails that unit loudly, is never swallowed ==================
=============================================================

Codes and names follow org.apache.kafka.common.protocol.Errors (4.3); the messages are Ottla's own
and say what the user can do.
"""

from enum import IntEnum
from typing import Any, NamedTuple


class ErrorRow(NamedTuple):
    """One error of the protocol; clients may retry if `retriable`."""

    code: int
    name: str
    retriable: bool
    message: str


_ROWS = (
    (-1, "UNKNOWN_SERVER_ERROR", False, "The broker failed with an unexpected error; see its log for details."),
    (0, "NONE", False, ""),
    (1, "OFFSET_OUT_OF_RANGE", False, "The partition has no such offset: it is before the start or after the end of the log."),
    (2, "CORRUPT_MESSAGE", True, "The batch is damaged: its checksum, size or structure is wrong."),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", True, "This broker has no such topic or partition."),
    (4, "INVALID_FETCH_SIZE", False, "The fetch size is not a usable number of bytes."),
    (5, "LEADER_NOT_AVAILABLE", True, "The partition has no leader yet."),
    (6, "NOT_LEADER_OR_FOLLOWER", True, "This broker does not lead the partition; refresh the metadata."),
    (7, "REQUEST_TIMED_OUT", True, "The request was not completed within its timeout."),
    (8, "BROKER_NOT_AVAILABLE", False, "No such broker is running."),
    (9, "REPLICA_NOT_AVAILABLE", True, "This broker has no usable replica of the partition."),
    (10, "MESSAGE_TOO_LARGE", False, "The batch is larger than max.message.bytes allows."),
    (11, "STALE_CONTROLLER_EPOCH", False, "The request comes from a controller that has been replaced."),
    (12, "OFFSET_METADATA_TOO_LARGE", False, "The metadata of the offset is longer than offset.metadata.max.bytes."),
    (13, "NETWORK_EXCEPTION", True, "The broker closed the connection before it responded."),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", True, "The coordinator is still reading its state; try again."),
    (15, "COORDINATOR_NOT_AVAILABLE", True, "No coordinator is available yet; try again."),
    (16, "NOT_COORDINATOR", True, "Another broker coordinates this group or transaction; look it up again."),
    (17, "INVALID_TOPIC_EXCEPTION", False, "The topic name is not allowed, or the topic is internal."),
    (18, "RECORD_LIST_TOO_LARGE", False, "The batch is larger than a segment of the topic (segment.bytes)."),
    (19, "NOT_ENOUGH_REPLICAS", True, "Fewer replicas are in sync than min.insync.replicas requires."),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", True, "The record was written, but to fewer replicas than min.insync.replicas requires."),
    (21, "INVALID_REQUIRED_ACKS", False, "acks must be 0, 1 or all (-1)."),
    (22, "ILLEGAL_GENERATION", False, "The generation is not the group's current one; rejoin."),
    (23, "INCONSISTENT_GROUP_PROTOCOL", False, "The member shares no protocol with the rest of the group."),
    (24, "INVALID_GROUP_ID", False, "The group id is empty or not allowed."),
    (25, "UNKNOWN_MEMBER_ID", False, "The group has no such member; rejoin with an empty member id."),
    (26, "INVALID_SESSION_TIMEOUT", False, "The session timeout is outside group.min/max.session.timeout.ms."),
    (27, "REBALANCE_IN_PROGRESS", False, "The group is rebalancing; rejoin."),
    (28, "INVALID_COMMIT_OFFSET_SIZE", False, "The offset commit is too large to be stored."),
    (29, "TOPIC_AUTHORIZATION_FAILED", False, "The principal may not do this to the topic."),
    (30, "GROUP_AUTHORIZATION_FAILED", False, "The principal may not use this group."),
    (31, "CLUSTER_AUTHORIZATION_FAILED", False, "The principal may not do this to the cluster."),
    (32, "INVALID_TIMESTAMP", False, "A timestamp is outside the range that the topic accepts."),
    (33, "UNSUPPORTED_SASL_MECHANISM", False, "The broker does not offer this SASL mechanism."),
    (34, "ILLEGAL_SASL_STATE", False, "The request does not fit the state of the SASL exchange."),
    (35, "UNSUPPORTED_VERSION", False, "The broker does not support this version of the request."),
    (36, "TOPIC_ALREADY_EXISTS", False, "A topic with this name already exists."),
    (37, "INVALID_PARTITIONS", False, "The number of partitions is not allowed."),
    (38, "INVALID_REPLICATION_FACTOR", False, "The replication factor is below 1 or above the number of brokers."),
    (39, "INVALID_REPLICA_ASSIGNMENT", False, "The replica assignment is not valid."),
    (40, "INVALID_CONFIG", False, "A configuration value is not allowed."),
    (41, "NOT_CONTROLLER", True, "This broker is not the controller."),
    (42, "INVALID_REQUEST", False, "The request is not valid: fields are missing or contradict each other."),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", False, "The message format does not support this operation."),
    (44, "POLICY_VIOLATION", False, "The request violates a policy of this cluster."),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False, "A sequence number is missing before this batch."),
    (46, "DUPLICATE_SEQUENCE_NUMBER", False, "The batch was already written."),
    (47, "INVALID_PRODUCER_EPOCH", False, "A newer producer has the same producer id; this one is fenced."),
    (48, "INVALID_TXN_STATE", False, "The transaction is not in a state that allows this."),
    (49, "INVALID_PRODUCER_ID_MAPPING", False, "The producer id does not belong to this transactional id."),
    (50, "INVALID_TRANSACTION_TIMEOUT", False, "The timeout is above transaction.max.timeout.ms or not positive."),
    (51, "CONCURRENT_TRANSACTIONS", True, "The previous transaction is still being completed; try again."),
    (52, "TRANSACTION_COORDINATOR_FENCED", False, "A newer transaction coordinator has replaced this one."),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, "The principal may not use this transactional id."),
    (54, "SECURITY_DISABLED", False, "Security is disabled in this cluster."),
    (55, "OPERATION_NOT_ATTEMPTED", False, "The operation was not attempted, because another part of the request failed."),
    (56, "KAFKA_STORAGE_ERROR", True, "The log directory of the partition is offline."),
    (57, "LOG_DIR_NOT_FOUND", False, "The broker has no such log directory."),
    (58, "SASL_AUTHENTICATION_FAILED", False, "The credentials were not accepted."),
    (59, "UNKNOWN_PRODUCER_ID", False, "The broker has no state for this producer id."),
    (60, "REASSIGNMENT_IN_PROGRESS", False, "The partition is being reassigned."),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", False, "Delegation tokens are disabled."),
    (62, "DELEGATION_TOKEN_NOT_FOUND", False, "There is no such delegation token."),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", False, "The principal neither owns nor may renew the token."),
    (64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", False, "Delegation tokens cannot be requested over this kind of connection."),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", False, "The principal may not use this delegation token."),
    (66, "DELEGATION_TOKEN_EXPIRED", False, "The delegation token has expired."),
    (67, "INVALID_PRINCIPAL_TYPE", False, "The type of the principal is unknown."),
    (68, "NON_EMPTY_GROUP", False, "The group still has members."),
    (69, "GROUP_ID_NOT_FOUND", False, "There is no such group."),
    (70, "FETCH_SESSION_ID_NOT_FOUND", True, "The broker has no such fetch session; start a new one."),
    (71, "INVALID_FETCH_SESSION_EPOCH", True, "The epoch of the fetch session is not the expected one; start a new session."),
    (72, "LISTENER_NOT_FOUND", True, "The leader has no listener with this name."),
    (73, "TOPIC_DELETION_DISABLED", False, "Topic deletion is disabled (delete.topic.enable)."),
    (74, "FENCED_LEADER_EPOCH", True, "The leader epoch of the request is older than the broker's."),
    (75, "UNKNOWN_LEADER_EPOCH", True, "The leader epoch of the request is newer than the broker's."),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", False, "This version of the request does not allow that codec."),
    (77, "STALE_BROKER_EPOCH", False, "The broker epoch belongs to an earlier registration."),
    (78, "OFFSET_NOT_AVAILABLE", True, "The new leader does not know its high watermark yet; try again."),
    (79, "MEMBER_ID_REQUIRED", False, "Rejoin with the member id of this response."),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", True, "The preferred leader is not in sync."),
    (81, "GROUP_MAX_SIZE_REACHED", False, "The group has as many members as group.max.size allows."),
    (82, "FENCED_INSTANCE_ID", False, "Another member has the same group.instance.id; this one is fenced."),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", True, "No replica is eligible to lead."),
    (84, "ELECTION_NOT_NEEDED", True, "The partition already has the requested leader."),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", False, "The partition is not being reassigned."),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", False, "The group is still subscribed to this topic."),
    (87, "INVALID_RECORD", False, "A record was rejected."),
    (88, "UNSTABLE_OFFSET_COMMIT", True, "An open transaction has pending offsets for this partition; retry."),
    (89, "THROTTLING_QUOTA_EXCEEDED", True, "A quota is exceeded; retry after throttle_time_ms."),
    (90, "PRODUCER_FENCED", False, "A newer producer has the same transactional id; this one is fenced."),
    (91, "RESOURCE_NOT_FOUND", False, "There is no such resource."),
    (92, "DUPLICATE_RESOURCE", False, "The resource is named twice in the request."),
    (93, "UNACCEPTABLE_CREDENTIAL", False, "The credential does not meet the requirements."),
    (94, "INCONSISTENT_VOTER_SET", False, "The voter set differs from the broker's."),
    (95, "INVALID_UPDATE_VERSION", False, "The version to update from is not the current one."),
    (96, "FEATURE_UPDATE_FAILED", False, "The features could not be changed."),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", False, "The forwarded principal could not be read."),
    (98, "SNAPSHOT_NOT_FOUND", False, "There is no such snapshot."),
    (99, "POSITION_OUT_OF_RANGE", False, "The position is outside the snapshot."),
    (100, "UNKNOWN_TOPIC_ID", True, "This broker has no topic with this id."),
    (101, "DUPLICATE_BROKER_REGISTRATION", False, "Another broker is registered with this id."),
    (102, "BROKER_ID_NOT_REGISTERED", False, "No broker is registered with this id."),
    (103, "INCONSISTENT_TOPIC_ID", True, "The topic id differs from the one the log belongs to."),
    (104, "INCONSISTENT_CLUSTER_ID", False, "The request is meant for another cluster."),
    (105, "TRANSACTIONAL_ID_NOT_FOUND", False, "There is no such transactional id."),
    (106, "FETCH_SESSION_TOPIC_ID_ERROR", True, "A fetch session mixes topic names and ids; start a new one."),
    (107, "INELIGIBLE_REPLICA", False, "The replica may not join the ISR."),
    (108, "NEW_LEADER_ELECTED", False, "The change elected another replica as the leader."),
    (109, "OFFSET_MOVED_TO_TIERED_STORAGE", False, "The offset has moved to tiered storage."),
    (110, "FENCED_MEMBER_EPOCH", False, "The member epoch is not the coordinator's; rejoin."),
    (111, "UNRELEASED_INSTANCE_ID", False, "Another member still uses this group.instance.id."),
    (112, "UNSUPPORTED_ASSIGNOR", False, "The coordinator has no such assignor, or the members do not share one."),
    (113, "STALE_MEMBER_EPOCH", False, "The member epoch is behind; retry with the current one."),
    (114, "MISMATCHED_ENDPOINT_TYPE", False, "The request was sent to the wrong kind of endpoint."),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", False, "This kind of endpoint is not supported."),
    (116, "UNKNOWN_CONTROLLER_ID", False, "There is no such controller."),
    (117, "UNKNOWN_SUBSCRIPTION_ID", False, "The telemetry subscription has changed; request it again."),
    (118, "TELEMETRY_TOO_LARGE", False, "The telemetry is larger than the broker accepts."),
    (119, "INVALID_REGISTRATION", False, "The controller rejected the registration of the broker."),
    (120, "TRANSACTION_ABORTABLE", False, "The transaction failed and can only be aborted."),
    (121, "INVALID_RECORD_STATE", False, "The record is not in a state that can be acknowledged."),
    (122, "SHARE_SESSION_NOT_FOUND", True, "The broker has no such share session."),
    (123, "INVALID_SHARE_SESSION_EPOCH", True, "The epoch of the share session is not the expected one."),
    (124, "FENCED_STATE_EPOCH", False, "The share state belongs to an older epoch."),
    (125, "INVALID_VOTER_KEY", False, "The voter key does not match the receiver."),
    (126, "DUPLICATE_VOTER", False, "The voter is already in the set."),
    (127, "VOTER_NOT_FOUND", False, "The voter is not in the set."),
    (128, "INVALID_REGULAR_EXPRESSION", False, "The regular expression is not valid."),
    (129, "REBOOTSTRAP_REQUIRED", False, "The client must bootstrap again."),
    (130, "STREAMS_INVALID_TOPOLOGY", False, "The topology is not valid."),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", False, "The epoch of the topology is not valid."),
    (132, "STREAMS_TOPOLOGY_FENCED", False, "The topology has been replaced."),
    (133, "SHARE_SESSION_LIMIT_REACHED", True, "The broker has reached the maximum number of share sessions."),
)  # fmt: skip

ERRORS: dict[int, ErrorRow] = {row[0]: ErrorRow(*row) for row in _ROWS}


class ErrorCode(IntEnum):
    """The protocol's error codes, by their Kafka names."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @property
    def message(self) -> str:
        """The message in the table."""
        return ERRORS[self.value].message

    @property
    def is_retriable(self) -> bool:
        """True if a client may retry."""
        return ERRORS[self.value].retriable


class OttlaError(Exception):
    """Root of every error that Ottla raises on purpose; other processes can unpickle it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to copy the error: with its attributes, which need not be its arguments."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class ApiError(OttlaError):
    """An error response of the protocol: `code`, and `message` if the response has a field for it.

    The text of the exception names the `subject` first, if there is one.
    """

    def __init__(self, code: ErrorCode, message: str | None = None, *, subject: str = "") -> None:
        self.code = code
        self.message = message or code.message
        super().__init__(f"{subject}: {self.message}" if subject else self.message)


class ProtocolError(OttlaError):
    """Bytes that violate the protocol: only the connection on which they arrived is closed."""


class StorageError(OttlaError):
    """A file could not be read, written or synced: the log directory goes offline."""

    def __init__(self, directory: str, message: str) -> None:
        super().__init__(f"{directory}: {message}")
        self.directory = directory


class OutOfDescriptorsError(StorageError):
    """No descriptor was free for a file: the operation failed, the log directory stays online."""


class ConfigError(OttlaError):
    """A configuration value that is invalid; the text names the option and the allowed values."""
