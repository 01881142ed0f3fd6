"""The producer's options for librdkafka, with Kafka's defaults."""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.base.errors import ApiError, OttlaError
from ottla.client import transport
from ottla.client.config.classes import STICKY, partitioner_of
from ottla.client.config.names import Role
from ottla.client.config.opening import open_client
from ottla.client.config.settings import ClientSettings
from ottla.client.errors import ClientError, Fenced, NotReachable, TimedOut, too_long
from ottla.client.reach.connection_watch import ConnectionWatch

_log = logging.getLogger("ottla.client")
# `ProducerErrors` logs fatal errors: librdkafka itself would write them to standard error.
_silent = logging.Logger("ottla.client.librdkafka", logging.CRITICAL + 1)
# Errors that are kept until they are logged.
_ERRORS_MAX = 100
# How long the end of a `with` block delays its error for records that cannot be delivered.
_HOPELESS_S = 1.0
_DEFAULTS = {
    # As the Java client places keys; records without a key stay together for a batch.
    "partitioner": "murmur2_random",
    "delivery.timeout.ms": 120_000,
    "transaction.timeout.ms": 60_000,
    "queue.buffering.max.kbytes": 32 * 1024,
}
_ALL = ("all", "-1", -1)
# While librdkafka waits for a group's coordinator that has died, it looks for the new one only when
# a connection to any broker is opened or closed (librdkafka's issues 5456 and 5511): `send_offsets`
# would wait for minutes. A transactional producer therefore closes idle connections.
_IDLE_MS = 3_000


def native_options(settings: ClientSettings) -> dict[str, Any]:
    """Return librdkafka's options.

    As in Kafka, `enable.idempotence` is true unless `acks`, `retries` or the number of requests in
    flight contradict it. `batch.size` has librdkafka's default (1 MB), because it bounds a request.
    """
    native = {**_DEFAULTS, **settings.native}
    if "transactional.id" in native and "delivery.timeout.ms" not in settings.native:
        # librdkafka requires that records time out before their transaction does.
        native["delivery.timeout.ms"] = min(120_000, int(native["transaction.timeout.ms"]))
    if "transactional.id" in native:
        native.setdefault("connections.max.idle.ms", _IDLE_MS)
    if settings.flag("partitioner.ignore.keys", False) or _is_sticky(settings):
        native["partitioner"] = "random"
    in_flight = int(native.get("max.in.flight.requests.per.connection", 5))
    is_tried_once = str(native.get("retries", "")) == "0"
    contradicts = native.get("acks", "all") not in _ALL or in_flight > 5 or is_tried_once
    native.setdefault("enable.idempotence", "false" if contradicts else "true")
    native.setdefault("max.in.flight.requests.per.connection", in_flight)
    if "delivery.timeout.ms" in settings.native and "request.timeout.ms" not in settings.native:
        limit = int(settings.native["delivery.timeout.ms"])
        native["request.timeout.ms"] = max(1, min(30_000, limit))
    return native


def _is_sticky(settings: ClientSettings) -> bool:
    """Return True for Java's UniformStickyPartitioner, which ignores keys."""
    return bool(partitioner_of(settings.own.get("partitioner.class")) == STICKY)


class ProducerErrors:
    """The errors that librdkafka reports besides errors of records, logged outside of its
    callbacks.

    The callback is a function in C, which Ctrl-C cannot interrupt: confluent-kafka may lose an
    exception of a callback if it calls another one.
    """

    def __init__(self, reachability: ConnectionWatch | None = None) -> None:
        self.pending: deque[Any] = deque(maxlen=_ERRORS_MAX)
        self._reachability = reachability
        self._fatal: Any = None

    def stopped(self, cause: Any) -> None:
        """Remember an error of librdkafka if it is fatal: records that were not sent fail with it."""
        if self._fatal is None and cause.fatal():
            self._fatal = cause

    @contextmanager
    def logged_if_fatal(self) -> Iterator[None]:
        """Log the error of the block instead of raising it if the producer cannot continue."""
        try:
            yield
        except (ApiError, ClientError) as error:
            if self._fatal is None:
                raise
            _log.warning("the producer is closed after a fatal error: %s", error)

    def unsent_report(self, cause: Any, report: Any) -> Exception:
        """Return our error for the error in librdkafka's delivery report."""
        return self.unsent(cause, report.topic(), report.partition())

    def unsent(self, cause: Any, topic: str | None, partition: int | None) -> Exception:
        """Return our error for a record that was not delivered."""
        fatal = self._fatal
        invalid = too_long(topic or "") if cause.name() == "_INVALID_ARG" else None
        if invalid is not None:
            return invalid
        if fatal is None or cause.code() not in transport.DROPPED:
            error = transport.unsent_error(cause, topic, partition)
            return self.explained(error)
        error = transport.translate(fatal)
        if isinstance(error, Fenced):
            return Fenced(f"the record was not sent: {error}")
        text = f"the record was not sent, because the producer cannot continue: {fatal.str()}"
        return ApiError(error.code, text) if isinstance(error, ApiError) else ClientError(text)

    def explained(self, error: OttlaError) -> OttlaError:
        """Return an error with the reason why no broker can be reached, if it is its cause."""
        if isinstance(error, NotReachable | TimedOut):
            return type(error)(self.because(str(error)))
        return error

    def because(self, text: str) -> str:
        """Return the text of an error, with the reason why no broker can be reached, if so."""
        return text if self._reachability is None else self._reachability.because(text)

    def is_undecided(self, sent: int, unacknowledged: int) -> bool:
        """Return True if it is soon known whether the cluster of unacknowledged records is there."""
        watch = self._reachability
        return watch is not None and unacknowledged >= sent > 0 and watch.is_undecided

    def patience_after_error(self, sent: int, unacknowledged: int) -> float | None:
        """Return for how many seconds a producer that is closed after an error waits for records.

        None is until their own time-out. A cluster that has never acknowledged a record, and that
        cannot be reached, would delay the error by that time.
        """
        is_reached = self._reachability is None or self._reachability.cause is None
        return None if is_reached or unacknowledged < sent else _HOPELESS_S

    def log(self) -> None:
        """Log the errors since the last call, and look for the cause of those of connections.

        The next call of the program raises a fatal error; librdkafka retries after any other.
        """
        while self.pending:
            error = self.pending.popleft()
            level = logging.ERROR if error.fatal() else logging.INFO
            _log.log(level, "the producer: %s", error.str())
            if self._reachability is not None:
                self._reachability.report(error)


def open_producer(settings: ClientSettings, errors: ProducerErrors) -> Any:
    """Return librdkafka's producer; ClientError names the wrong option."""
    properties = {"error_cb": errors.pending.append, "logger": _silent, **native_options(settings)}
    return open_client(Role.PRODUCER, settings, transport.open_producer, properties)
