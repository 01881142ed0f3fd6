"""The clients that push metrics: their subscriptions, intervals and latest payloads.

Pure except for the logs: the time (`now_ms`, of a monotonic clock) and random ids are passed in. A
client is forgotten when it has been silent for three of its intervals, but at least a minute; if
there are too many clients, the one that was silent longest is forgotten. The latest payload of each
client is kept for monitoring (`pushed`). Follows org.apache.kafka.server.ClientMetricsManager.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.uuids import METADATA_TOPIC_UUID, ZERO_UUID, random_uuid, uuid_text
from ottla.cluster.options.client_metrics_options import INTERVAL_MS_DEFAULT
from ottla.cluster.znodes import ConfigNode
from ottla.server.telemetry.subscriptions import (
    ALL_METRICS,
    Subscription,
    check,
    subscription_of,
)
from ottla.wire.records.batch import crc32c
from ottla.wire.records.compression import CODECS, decompress

_log = logging.getLogger(__name__)

CLIENTS_MAX = 16_384
# The size of all kept payloads together; the oldest are removed first.
PAYLOADS_BYTES_MAX = 32 * 1024**2
_SILENT_MS_MIN = 60_000
_SILENT_INTERVALS = 3
# In the order of preference, as in Kafka.
ACCEPTED_CODECS = tuple(CODECS[name] for name in ("zstd", "lz4", "gzip", "snappy"))
_RESERVED = frozenset({ZERO_UUID, METADATA_TOPIC_UUID})
# After these errors a client may ask again at once, to correct its request.
_FORGIVEN = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})


class ClientSubscription(NamedTuple):
    """The metrics that a client shall push."""

    instance_id: bytes
    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int


class Push(NamedTuple):
    """The content of a push."""

    instance_id: bytes
    subscription_id: int
    is_terminating: bool
    codec: int
    metrics: bytes


class Pushed(NamedTuple):
    """The latest push of a client: OpenTelemetry's MetricsData, its sender and its time."""

    instance_id: str
    attributes: Mapping[str, str | None]
    at_ms: float
    is_terminating: bool
    payload: bytes


class _Client:
    """One instance of a client: its id, subscription and latest push."""

    __slots__ = (
        "attributes",
        "error",
        "got_ms",
        "heard_ms",
        "is_terminating",
        "pushed",
        "pushed_ms",
        "subscription",
        "version",
    )

    def __init__(
        self, subscription: ClientSubscription, attributes: Mapping[str, str | None], version: int
    ) -> None:
        self.subscription = subscription
        self.attributes = attributes
        self.version = version
        self.heard_ms = 0.0
        self.got_ms: float | None = None
        self.pushed_ms: float | None = None
        self.is_terminating = False
        self.error = ErrorCode.NONE
        self.pushed: Pushed | None = None

    def may_get(self, now_ms: float) -> bool:
        """Record a request for the subscription; return False if it comes too early."""
        last = max((ms for ms in (self.got_ms, self.pushed_ms) if ms is not None), default=None)
        if last is not None and now_ms - last < self.subscription.interval_ms:
            return False
        self.got_ms = now_ms
        return True

    def may_push(self, now_ms: float) -> bool:
        """Record a push; False if it comes too early. The first after a subscription never does."""
        last, got_ms = self.pushed_ms, self.got_ms
        is_first = got_ms is not None and (last is None or got_ms > last)
        if not is_first and last is not None and now_ms - last < self.subscription.interval_ms:
            return False
        self.pushed_ms = now_ms
        return True


class ClientMetrics:
    """All subscriptions and clients of a broker.

    `max_bytes` limits a payload, compressed and uncompressed (telemetry.max.bytes). `on_change` is
    called after every change of subscriptions, with whether there are any.
    """

    def __init__(self, max_bytes: int, new_id: Callable[[], bytes]) -> None:
        self.max_bytes = max_bytes
        self.on_change: list[Callable[[bool], None]] = []
        self._new_id = new_id
        self._subscriptions: dict[str, Subscription] = {}
        # The number of changes of subscriptions.
        self._version = 0
        # In the order in which they were heard of.
        self._clients: OrderedDict[bytes, _Client] = OrderedDict()
        self._payloads_bytes = 0

    def settings_changed(self, entity_type: str, path: str, settings: Mapping[str, str]) -> None:
        """Apply a subscription from the tree; empty settings remove it, other types are ignored."""
        if entity_type != ConfigNode.CLIENT_METRICS:
            return
        name = ConfigNode.desanitize(path) or ""
        self._version += 1
        self._subscriptions.pop(name, None)
        try:
            if settings:
                check(name, settings)
                self._subscriptions[name] = subscription_of(settings)
        except ApiError as error:
            _log.warning("client metrics ignored subscription=%s reason=%s", name, error.message)
        for tell in self.on_change:
            tell(bool(self._subscriptions))

    def pushed(self) -> list[Pushed]:
        """Return the latest push of every client that has pushed, the oldest client first."""
        return [client.pushed for client in self._clients.values() if client.pushed is not None]

    @property
    def clients_count(self) -> int:
        """The number of known clients."""
        return len(self._clients)

    # -- requests ---------------------------------------------------------------------------------

    def ask(
        self, instance_id: bytes, attributes: Mapping[str, str | None], now_ms: float
    ) -> ClientSubscription:
        """Return the metrics that a client shall push, and a new id if it has no id yet.

        Raises ApiError THROTTLING_QUOTA_EXCEEDED if it asks again before its interval is over.
        """
        if instance_id == ZERO_UUID:
            instance_id = self._new_id()
        client = self._heard(instance_id, attributes, now_ms)
        if not client.may_get(now_ms):
            if client.error not in _FORGIVEN:
                raise _too_early()
            # The push that follows is a first one. (Kafka would throttle it.)
            client.got_ms = now_ms
        client.error = ErrorCode.NONE
        return client.subscription

    def push(self, push: Push, attributes: Mapping[str, str | None], now_ms: float) -> None:
        """Store a client's push; raises ApiError with the code that the client has to handle."""
        if push.instance_id in _RESERVED:
            raise ApiError(ErrorCode.INVALID_REQUEST, "A push needs the client's instance id.")
        client = self._heard(push.instance_id, attributes, now_ms)
        try:
            self._check(client, push, now_ms)
            payload = self._payload(push)
        except ApiError as error:
            client.error = error.code
            raise
        finally:
            client.is_terminating = push.is_terminating
        client.error = ErrorCode.NONE
        if payload:
            self._keep(client, push, payload, now_ms)

    def _check(self, client: _Client, push: Push, now_ms: float) -> None:
        if client.is_terminating:
            raise ApiError(ErrorCode.INVALID_REQUEST, "The client has announced its termination.")
        if not client.may_push(now_ms) and not push.is_terminating:
            raise _too_early()
        if push.subscription_id != client.subscription.subscription_id:
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if push.codec not in CODECS.values():
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(push.metrics) > self.max_bytes:
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _payload(self, push: Push) -> bytes:
        if not push.metrics:
            return b""
        try:
            return decompress(push.codec, push.metrics, max_bytes=self.max_bytes)
        except ApiError as error:
            is_large = error.code is ErrorCode.MESSAGE_TOO_LARGE
            code = ErrorCode.TELEMETRY_TOO_LARGE if is_large else ErrorCode.INVALID_RECORD
            raise ApiError(code, error.message) from error

    # -- clients ----------------------------------------------------------------------------------

    def _heard(
        self, instance_id: bytes, attributes: Mapping[str, str | None], now_ms: float
    ) -> _Client:
        """Return the client with its current subscriptions; remove clients silent for too long."""
        self._forget_silent(now_ms)
        client = self._clients.get(instance_id)
        if client is None or client.version != self._version:
            former, client = client, self._new_client(instance_id, attributes)
            if former is not None:
                client.pushed = former.pushed
            elif len(self._clients) >= CLIENTS_MAX:
                self._forget(next(iter(self._clients)))
            self._clients[instance_id] = client
        client.heard_ms = now_ms
        self._clients.move_to_end(instance_id)
        return client

    def _new_client(self, instance_id: bytes, attributes: Mapping[str, str | None]) -> _Client:
        all_attributes = {**attributes, "client_instance_id": uuid_text(instance_id)}
        matching = [
            subscription
            for subscription in self._subscriptions.values()
            if subscription.is_for(all_attributes)
        ]
        metrics = {name for subscription in matching for name in subscription.metrics}
        if ALL_METRICS in metrics:
            metrics = {ALL_METRICS}
        interval_ms = min(
            [subscription.interval_ms for subscription in matching], default=INTERVAL_MS_DEFAULT
        )
        interval_ms = min(interval_ms, INTERVAL_MS_DEFAULT)
        subscription_id = _subscription_id(sorted(metrics), interval_ms, instance_id)
        subscription = ClientSubscription(
            instance_id, subscription_id, tuple(sorted(metrics)), interval_ms
        )
        return _Client(subscription, all_attributes, self._version)

    def _forget_silent(self, now_ms: float) -> None:
        while self._clients:
            instance_id, client = next(iter(self._clients.items()))
            silent_ms = max(_SILENT_MS_MIN, _SILENT_INTERVALS * client.subscription.interval_ms)
            if now_ms - client.heard_ms < silent_ms:
                return
            self._forget(instance_id)

    def _forget(self, instance_id: bytes) -> None:
        client = self._clients.pop(instance_id)
        if client.pushed is not None:
            self._payloads_bytes -= len(client.pushed.payload)

    def _keep(self, client: _Client, push: Push, payload: bytes, now_ms: float) -> None:
        former = client.pushed
        client.pushed = Pushed(
            uuid_text(push.instance_id), client.attributes, now_ms, push.is_terminating, payload
        )
        self._payloads_bytes += len(payload) - (len(former.payload) if former else 0)
        for other in self._clients.values():
            if self._payloads_bytes <= PAYLOADS_BYTES_MAX:
                return
            if other.pushed is not None and other is not client:
                self._payloads_bytes -= len(other.pushed.payload)
                other.pushed = None


def _too_early() -> ApiError:
    return ApiError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client's push interval is not over yet."
    )


def _subscription_id(metrics: Iterable[str], interval_ms: int, instance_id: bytes) -> int:
    """Return the subscription's id: a checksum of the requested metrics and the client's id."""
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    halves = int.from_bytes(instance_id[:8], "big") ^ int.from_bytes(instance_id[8:], "big")
    value = (checksum ^ halves >> 32 ^ halves) & 0xFFFF_FFFF
    return value - 2**32 if value >> 31 else value


def client_metrics(options: Snapshot, rng: Rng) -> ClientMetrics:
    """Return the client metrics of a broker with these options, without subscriptions."""
    return ClientMetrics(options.integer("telemetry.max.bytes"), partial(random_uuid, rng))
