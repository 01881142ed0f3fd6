"""The errors of the API: a code, a sentence, and what to do."""

from typing import Any, NamedTuple

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.errors import NotReachable, TimedOut, Unsupported
from ottla.console.catalogue import UnknownCluster
from ottla.console.model.messages.masking import MaskedTopic
from ottla.console.web.respond import NOT_AUTHORIZED, status_of
from ottla.operations.offsets.resets import PlanOutdated
from ottla.operations.survey.connections import ClusterUnavailable, LoginRefused

_REMEDIES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "List the topics and check the name and the partition.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "Choose another name, or delete the topic first.",
    ErrorCode.INVALID_CONFIG: "Read the options of the resource and their documentation.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "Use at most as many replicas as there are brokers.",
    ErrorCode.INVALID_PARTITIONS: "Partitions can only be added: use a larger number.",
    ErrorCode.GROUP_ID_NOT_FOUND: "List the groups and check the id.",
    ErrorCode.NON_EMPTY_GROUP: "Stop the consumers of the group, or remove its members, then repeat.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "List the transactions and check the id.",
    ErrorCode.BROKER_NOT_AVAILABLE: "Start the broker, or choose another one.",
    ErrorCode.LEADER_NOT_AVAILABLE: "Start the brokers of the partition, then repeat.",
    ErrorCode.RESOURCE_NOT_FOUND: "List what there is and check the id or name.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "Read the partition's offsets and choose one of them.",
    **dict.fromkeys(
        NOT_AUTHORIZED, "Give the console's user in the cluster an ACL, or configure another one."
    ),
    ErrorCode.SECURITY_DISABLED: "Configure an authorizer on the brokers.",
}
_DEFAULT_REMEDY = "Correct the request, or look up the error code in Kafka's protocol guide."


class Failure(NamedTuple):
    """An error as the API returns it."""

    status: int
    code: str
    message: str
    remedy: str

    def to_json(self) -> dict[str, Any]:
        """Return the body of the response."""
        fields = {"code": self.code, "message": self.message, "remedy": self.remedy}
        return {"error": fields | {"status": self.status}}


class Denied(Exception):
    """A request that the caller may not make."""

    def __init__(self, status: int, code: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.failure = Failure(status, code, message, remedy)


def failure_of(error: Exception) -> Failure:
    """Return the form of an error of the cluster or of the input."""
    status, message = status_of(error), str(error) or type(error).__name__
    if isinstance(error, ApiError):
        remedy = _REMEDIES.get(error.code, _DEFAULT_REMEDY)
        return Failure(status, error.code.name, message, remedy)
    for kind, code, remedy in _KINDS:
        if isinstance(error, kind):
            return Failure(status, code, message, remedy)
    return Failure(status, "FAILED", message, "Try again; if it persists, read the console's log.")


_KINDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (UnknownCluster, "UNKNOWN_CLUSTER", "List the clusters and check the name."),
    (
        LoginRefused,
        "CLUSTER_REFUSES_LOGIN",
        "Correct the cluster's file of --command-config and restart the console.",
    ),
    (
        (ClusterUnavailable, NotReachable, TimedOut),
        "CLUSTER_UNAVAILABLE",
        "Check that the brokers are running, then repeat the request.",
    ),
    (Unsupported, "UNSUPPORTED", "The cluster lacks this feature: use a newer version of it."),
    (MaskedTopic, "MASKED", "Ask an admin of the console, who may read masked fields."),
    (PlanOutdated, "PLAN_OUTDATED", "Make the plan again and check it."),
    (ConfigError, "INVALID_ARGUMENT", "Correct the argument that the message names."),
)

UNAUTHENTICATED = Denied(
    401,
    "UNAUTHENTICATED",
    "The request has neither valid credentials nor a session.",
    "Send a user and password of the console with HTTP Basic authentication.",
)
