"""Errors between a client and a cluster, apart from error codes in responses.

OttlaError
├── ApiError           the broker responded with an error code (base/errors.py)
│   └── RecordsDenied  the user may not read or write the records of a topic
└── ClientError
    ├── NotReachable   no connection could be opened, or it was closed too early
    │   ├── HandshakeFailed   the TLS handshake failed
    │   └── NoBroker          another kind of server listens at the address
    ├── TimedOut       the response did not arrive in time
    ├── Unsupported    client and broker share no version of the request
    ├── Closed         the client has been closed
    ├── Fenced         a newer client with the same id has taken over
    ├── CommitFailed   offsets were not committed; says why
    ├── TransactionAborted   the transaction was aborted and can be repeated
    ├── SerializationError   a value cannot be serialized, or a schema registry rejects it
    └── DeserializationError a record cannot be deserialized
"""

from ottla.base.errors import ApiError, ErrorCode, OttlaError

_TOPIC_LENGTH_MAX = 249


def too_long(topic: str) -> ApiError | None:
    """Return the error for a topic whose name is too long; None for any other.

    librdkafka would refuse a record without naming the topic or the reason.
    """
    if len(topic) <= _TOPIC_LENGTH_MAX:
        return None
    return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, subject=f"Topic {topic!r}")


class RecordsDenied(ApiError):
    """The user is denied the `operation` (Read or Write) on the records of `topic`."""

    def __init__(self, topic: str, operation: str) -> None:
        super().__init__(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            f"The principal is denied the operation {operation}.",
            subject=f"Topic {topic!r}",
        )
        self.topic, self.operation = topic, operation


class ClientError(OttlaError):
    """Root of the client's own errors."""


class NotReachable(ClientError):
    """No broker could be reached. A retry may succeed, unless the address is wrong."""


class HandshakeFailed(NotReachable):
    """The TLS handshake failed: an untrusted certificate, or another protocol at the address."""


class NoBroker(NotReachable):
    """Another kind of server listens at the address: a web server, or a broker that speaks TLS."""

    def __init__(self, text: str, *, is_tls: bool = False) -> None:
        super().__init__(text)
        self.is_tls = is_tls


class TimedOut(ClientError):
    """A broker did not respond within the timeout."""


class Unsupported(ClientError):
    """Client and broker share no version of a request; `api` is its name, as in ListGroups."""

    def __init__(self, text: str, *, api: str = "") -> None:
        super().__init__(text)
        self.api = api


class Closed(ClientError):
    """The client has been closed and cannot be used again."""


class Fenced(ClientError):
    """A newer client with the same transactional id or group instance id has taken over."""


class CommitFailed(ClientError):
    """Offsets were not committed because the member left its group; the message has the reason."""


class TransactionAborted(ClientError):
    """The transaction was aborted; its records are not visible, and it can be repeated."""


class SerializationError(ClientError, ValueError):
    """A serde cannot serialize a value, or a schema registry rejects it; names the topic."""


class DeserializationError(ClientError, ValueError):
    """A record cannot be deserialized (RecordDeserializationException, KIP-334).

    `topic`, `partition` and `offset` are the record's: seek to `offset` + 1 to skip it.
    """

    def __init__(self, text: str, topic: str, partition: int, offset: int) -> None:
        super().__init__(text)
        self.topic, self.partition, self.offset = topic, partition, offset
