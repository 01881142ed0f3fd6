"""librdkafka's producer and consumer, and its errors as ours: the only module that imports
confluent_kafka.

`open_producer` and `open_consumer` return librdkafka's own objects: `Producer` and `Consumer` are
built on them, and the classes of `raw` for the tools. `settings` uses librdkafka's own option
names. librdkafka's threads do the work; each object belongs to one thread.
"""

import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol, TypeVar

import confluent_kafka as librdkafka
from confluent_kafka import KafkaError, KafkaException

from ottla.base.errors import ERRORS, ApiError, ConfigError, ErrorCode, OttlaError
from ottla.base.user_code import LoggedErrors
from ottla.client.config.refused_options import check_text, refused_option
from ottla.client.errors import ClientError, Closed, Fenced, NotReachable, RecordsDenied, TimedOut
from ottla.client.records import native_names

T = TypeVar("T")
Settings = Mapping[str, Any]
TopicPartition = tuple[str, int]
Header = tuple[str, bytes | None]
Opened = Callable[[dict[str, Any]], Any]
"""Returns librdkafka's client, or another object with its methods, for settings."""

_CLIENT = {
    "client.id": "ottla",
    # Without a logger, librdkafka writes to standard error.
    "log_level": 0,
}
QUEUE = {
    # Records of a partition above which librdkafka fetches no more. Its default is 100 000: they
    # leave the processor's cache before they are read, and each costs up to a quarter more.
    "queued.min.messages": 20_000,
    # A smaller queue must not pause for a second, librdkafka's default, while it is full.
    "fetch.queue.backoff.ms": 2,
}
_NO_TOKENS = (
    'tokenauth="true" in sasl.jaas.config: producers and consumers cannot log in with a delegation '
    "token, because librdkafka cannot; use a user and a password (AdminClient and administration "
    "can use the token)"
)


_error_of: Callable[[Any], KafkaError | None] = librdkafka.Message.error
value_of: Callable[[Any], Any] = librdkafka.Message.value
"""Returns the value of librdkafka's message."""
INTERRUPTED_S = 0.1
"""The time that a client may use to close after Ctrl-C."""
LibrdkafkaError = KafkaException
"""The exception that librdkafka's objects raise; its first argument is for `translate`."""
TIMESTAMP_TYPES = {
    librdkafka.TIMESTAMP_CREATE_TIME: "create",
    librdkafka.TIMESTAMP_LOG_APPEND_TIME: "logappend",
}
"""The names of the types of timestamps; "unknown" has no name."""
EARLIEST, LATEST = librdkafka.OFFSET_BEGINNING, librdkafka.OFFSET_END
"""Logical offsets for `partitions`."""
STORED = librdkafka.OFFSET_INVALID
"""The offset that a group has committed, or the one that auto.offset.reset selects."""
# Errors of librdkafka that a consumer reports with its own sentences.
ALL_BROKERS_DOWN = KafkaError._ALL_BROKERS_DOWN
DROPPED = KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._FATAL
END_OF_PARTITION = KafkaError._PARTITION_EOF
POLL_TOO_LATE = KafkaError._MAX_POLL_EXCEEDED
MESSAGE_TOO_LARGE = KafkaError.MSG_SIZE_TOO_LARGE
NO_OFFSET = KafkaError._NO_OFFSET
NO_POSITION = KafkaError._AUTO_OFFSET_RESET
WRONG_STATE = KafkaError._STATE
READ, WRITE = "Read", "Write"
"""Operations for `record_error`."""
GROUP_DENIED = KafkaError.GROUP_AUTHORIZATION_FAILED
"""librdkafka looks up a coordinator even if no group is used: this error is then none."""
OTHER_RECORD = KafkaError._INVALID_DIFFERENT_RECORD
"""Another record of the batch was refused."""
UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION
UNKNOWN_TOPIC = KafkaError._UNKNOWN_TOPIC
_TRANSIENT = (
    "_ALL_BROKERS_DOWN",
    "_TRANSPORT",
    "_RESOLVE",
    "_TIMED_OUT",
    "_UNKNOWN_PARTITION",
    "_UNKNOWN_TOPIC",
    "UNKNOWN_TOPIC_OR_PART",
    "LEADER_NOT_AVAILABLE",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "REBALANCE_IN_PROGRESS",
)
# A lookup is repeated after these errors of librdkafka, and after those that Kafka calls retriable.
_PASSING_LOOKUPS = frozenset(
    {"_ALL_BROKERS_DOWN", "_DESTROY_BROKER", "_RESOLVE", "_TIMED_OUT", "_TRANSPORT", "_WAIT_COORD"}
)
# librdkafka reports it for a partition without a leader, and for one that does not exist.
_MAYBE_MISSING_S = 3.0
_NO_EXCEPTION = "returned NULL without setting an exception"
_FENCED_NAMES = ("PRODUCER_FENCED", "_FENCED", "FENCED_INSTANCE_ID", "INVALID_PRODUCER_EPOCH")


class Slowness(Protocol):
    """Explains why calls take long: what keeps the client from its brokers."""

    def suspect(self) -> None:
        """Look for the cause, in the background."""
        ...

    def because(self, text: str) -> str:
        """Return the text of an error, with the cause if there is one."""
        ...


class Waits:
    """Makes calls of librdkafka that block, in a thread of their own: Ctrl-C ends the wait.

    The call itself continues in its thread, which does not keep the process alive. A call that
    takes long is reported to `slowness`.
    """

    _STEP_S = 0.05
    _LONG_S = 0.3

    def __init__(self, slowness: "Slowness | None" = None) -> None:
        self._slowness = slowness
        self._is_stopped = threading.Event()
        self._calls: list[Future[Any]] = []

    @property
    def is_busy(self) -> bool:
        """True while a call continues; librdkafka's consumer makes other calls wait for it."""
        return not all(call.done() for call in self._calls)

    def stop(self) -> None:
        """Let waits in other threads raise Closed soon."""
        self._is_stopped.set()

    def call(self, request: Callable[[], T], timeout_s: float = math.inf) -> T:
        """Return the result of a call; TimedOut after `timeout_s` seconds."""
        future: Future[T] = Future()
        self._calls = [*(call for call in self._calls if not call.done()), future]
        threading.Thread(
            target=_complete, args=(request, future), name="ottla-call", daemon=True
        ).start()
        return self.result(future, timeout_s)

    def result(self, future: Future[T], timeout_s: float = math.inf) -> T:
        """Return the result of another thread; TimedOut after `timeout_s` seconds."""
        started = time.monotonic()
        deadline, slowness = started + timeout_s, self._slowness
        while (remaining_s := deadline - time.monotonic()) > 0:
            try:
                return future.result(min(self._STEP_S, remaining_s))
            except TimeoutError:
                if self._is_stopped.is_set():
                    raise Closed("the client was closed while a call was waiting") from None
            if slowness is not None and time.monotonic() > started + self._LONG_S:
                slowness.suspect()
                slowness = None
        raise TimedOut(self.because(f"the cluster did not respond within {timeout_s:g} s"))

    def suspect(self) -> None:
        """Look for the cause of a call that is repeated, in the background."""
        if self._slowness is not None:
            self._slowness.suspect()

    def because(self, text: str) -> str:
        """Return the text of an error, with the cause if there is one."""
        return text if self._slowness is None else self._slowness.because(text)


def _complete(request: Callable[[], T], future: "Future[T]") -> None:
    with LoggedErrors(future.set_exception):
        future.set_result(request())


@contextmanager
def lost_interrupts() -> Iterator[None]:
    """Raise Ctrl-C if librdkafka's binding raises SystemError instead: while a broker is down."""
    try:
        yield
    except SystemError as error:
        raise_interrupt(error)


def raise_interrupt(error: SystemError) -> NoReturn:
    """Raise Ctrl-C if it is the cause of the binding's error; otherwise the error itself."""
    if _NO_EXCEPTION not in str(error):
        raise error
    raise KeyboardInterrupt from error


def has_errors(messages: Sequence[Any]) -> bool:
    """Return True if a message is an error instead of a record, without a Python call for each."""
    # A fifth faster than any(map(...)).
    return next(filter(_error_of, messages), None) is not None


def is_end(message: Any) -> bool:
    """Return True for librdkafka's report that a consumer has reached the end of a partition."""
    error = message.error()
    return error is not None and error.code() == END_OF_PARTITION


# The largest value that librdkafka allows; its default refuses records that topics accept.
_RECORD_BYTES_MAX = 1_000_000_000


def open_producer(settings: Settings) -> Any:
    """Return librdkafka's producer; ClientError if it rejects a setting."""
    defaults = {
        # Kafka's own hash, so that every client places a key in the same partition.
        "partitioner": "murmur2_random",
        # The topic decides which record is too large; batches have batch.size bytes as before.
        "message.max.bytes": _RECORD_BYTES_MAX,
    }
    return _open(librdkafka.Producer, {**defaults, **settings})


def close_producer(producer: Any) -> None:
    """Close librdkafka's producer; records that are left fail with Closed.

    A transaction that cannot be aborted any more is not reported.
    """
    if len(producer):
        producer.purge()
    with warnings.catch_warnings(), translated_errors():
        warnings.simplefilter("ignore", RuntimeWarning)
        producer.close()


def open_consumer(settings: Settings, opened: Opened | None = None) -> Any:
    """Return librdkafka's consumer, or what `opened` returns; ClientError if it rejects a setting."""
    return _open(opened or librdkafka.Consumer, settings)


def subscribe(
    consumer: Any,
    topics: Sequence[str],
    assigned: Callable[[Any, Any], None],
    revoked: Callable[[Any, Any], None],
    lost: Callable[[Any, Any], None],
) -> None:
    """Join librdkafka's group; ClientError if a pattern, which begins with ^, is invalid."""
    try:
        consumer.subscribe(
            native_names(topics), on_assign=assigned, on_revoke=revoked, on_lost=lost
        )
    except KafkaException as error:
        if error.args[0].code() == KafkaError._INVALID_ARG:
            names = ", ".join(map(repr, topics))
            raise ClientError(
                f"cannot subscribe to {names}: a name is empty, or a pattern is not a regular "
                "expression of librdkafka (POSIX extended)"
            ) from error
        raise _translate(error.args[0]) from error


def broker_error(code: int) -> Exception:
    """Return the LibrdkafkaError of a broker's error code."""
    return KafkaException(KafkaError(code))


def is_transient(error: KafkaError) -> bool:
    """Return True for errors of a consumer that librdkafka retries itself."""
    return error.name() in _TRANSIENT or (error.retriable() and not error.fatal())


def lookup_patience_s(error: KafkaError) -> float:
    """Return for how many seconds a lookup with this error is repeated: 0 if the error is final."""
    code = error.code()
    if error.name() in _PASSING_LOOKUPS or (code in ERRORS and ERRORS[code].retriable):
        return math.inf
    return _MAYBE_MISSING_S if is_missing(error) else 0.0


def is_missing(error: KafkaError) -> bool:
    """Return True if librdkafka's metadata has no leader of the partition, or no such partition."""
    return error.code() in (UNKNOWN_PARTITION, UNKNOWN_TOPIC)


def is_fenced_instance(error: KafkaError) -> bool:
    """Return True if another consumer has joined with the same group.instance.id (KIP-345)."""
    # Inside of a fatal error only the text has the cause.
    return error.code() == KafkaError.FENCED_INSTANCE_ID or (
        error.code() == KafkaError._FATAL and "group.instance.id" in error.str()
    )


def is_fatal(error: KafkaError) -> bool:
    """Return True if librdkafka's client does nothing any more since an earlier error."""
    return bool(error.code() == KafkaError._FATAL)


def partitions(offsets: Mapping[Any, int]) -> list[Any]:
    """Return librdkafka's form of partitions and offsets."""
    return [
        librdkafka.TopicPartition(topic, partition, offset)
        for (topic, partition), offset in offsets.items()
    ]


def commit_list(rows: Mapping[Any, tuple[int, str]]) -> list[Any]:
    """Return librdkafka's form of offsets to commit, each with its metadata.

    The binding ends a text with a NUL character, which librdkafka sends: an empty one is left out.
    """
    return [
        librdkafka.TopicPartition(topic, partition, offset, metadata)
        if metadata
        else librdkafka.TopicPartition(topic, partition, offset)
        for (topic, partition), (offset, metadata) in rows.items()
    ]


def translate(error: KafkaError) -> OttlaError:
    """Return our error for librdkafka's; Fenced if another client has taken over."""
    if error.name() in _FENCED_NAMES:
        return Fenced(f"a newer client with the same id has taken over: {error.str()}")
    return _translate(error)


def unsent_error(error: KafkaError, topic: str | None, partition: int | None) -> OttlaError:
    """Return our error for a record that was not delivered, with its topic and partition."""
    code, has_partition = error.code(), partition not in (None, -1)
    if code == UNKNOWN_PARTITION and has_partition:
        text = f"There is no partition {partition} of topic {topic!r}."
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    is_unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not has_partition
    if code == UNKNOWN_TOPIC or is_unknown:
        text = f"There is no topic {topic!r}, and the cluster does not create it."
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return record_error(error, topic, WRITE)


def record_error(error: KafkaError, topic: str | None, operation: str) -> OttlaError:
    """Return our error for librdkafka's about a record of a topic."""
    if error.code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED and topic:
        return RecordsDenied(topic, operation)
    return translate(error)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise librdkafka's errors of the block as ours."""
    try:
        yield
    except KafkaException as error:
        raise translate(error.args[0]) from error


def _open(kind: Opened, settings: Settings) -> Any:
    properties = {**_CLIENT, **settings}
    for name, value in properties.items():
        if isinstance(value, str):
            check_text(name, value)
    # A delegation token of sasl.jaas.config: librdkafka has no such setting.
    if "sasl.tokenauth" in properties:
        raise ConfigError(_NO_TOKENS)
    # confluent-kafka would abort the process.
    if not str(properties.get("group.id", "x")).strip():
        raise ConfigError(f"group.id={properties['group.id']!r} is blank: name a group")
    try:
        return kind(properties)
    except KafkaException as error:
        raise refused_option(error.args[0].str(), properties) from error


def _translate(error: KafkaError) -> OttlaError:
    """Return our error for librdkafka's: broker codes are positive, its own are below -1."""
    code = error.code()
    if code in ERRORS and code > 0:
        return ApiError(ErrorCode(code))
    if code in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE):
        return NotReachable(error.str())
    if code == KafkaError._PURGE_QUEUE:
        return Closed("the producer was closed before the record was sent")
    if code == KafkaError._PURGE_INFLIGHT:
        return Closed(
            "the producer was closed before the record was acknowledged: it may be stored"
        )
    if code in (KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT):
        return TimedOut(f"the cluster did not take the records in time ({error.str()})")
    return ClientError(f"{error.str()} ({error.name()})")
