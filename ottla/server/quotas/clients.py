"""The use that clients have made of their quotas, and the throttle time of each request.

A limited client is one to which any quota applies; the dispatcher looks it up once and again after
each change of quotas (`generation`). Several clients may share one measure: all clients of a user
whose quota is the user's. Follows kafka.server.ClientQuotaManager, ClientRequestQuotaManager and
ControllerMutationQuotaManager; quotas apply per broker, as in Kafka.

100 % of `request_percentage` is one core: the event loop, which does all the work of requests.
(Kafka has (num.io.threads + num.network.threads) × 100 %.)
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from ottla.base.clock import Clock
from ottla.base.options import Snapshot
from ottla.server.quotas.book import Applied, QuotaBook
from ottla.server.quotas.entities import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    QUOTA_TYPES,
    REQUEST_PERCENTAGE,
    entity_at,
    values_of,
)
from ottla.server.quotas.rates import QuotaWindow, Rate, TokenBucket

# How many measures and clients are remembered: clients choose the names.
_KEPT_MAX = 10_000

M = TypeVar("M", Rate, TokenBucket)


class Measured(NamedTuple):
    """The current use of a quota, per second; tokens are the rest of a quota of mutations."""

    key: str
    user: str
    client_id: str
    limit: float
    used: float | None = None
    tokens: float | None = None


class LimitedClient:
    """The measures of one client; None if nothing limits it."""

    __slots__ = ("fetch", "mutation", "produce", "request", "window")

    def __init__(self, window: QuotaWindow) -> None:
        self.window = window
        self.produce: Rate | None = None
        self.fetch: Rate | None = None
        self.request: Rate | None = None
        self.mutation: TokenBucket | None = None

    @property
    def fetch_bytes_max(self) -> float:
        """Bytes that can be fetched at once by a client that has fetched nothing for long."""
        if self.fetch is None:
            return float("inf")
        return self.fetch.limit * self.window.whole_ms / 1000


class RequestUsage:
    """One request of a limited client, from its frame to its response; `now` in seconds.

    The time between `started` and `stopped` is charged to the client; it may be in several pieces.
    """

    __slots__ = (
        "_client",
        "_is_settled",
        "_produced_bytes",
        "_spent",
        "_started",
        "_throttle_ms",
        "_throttled_until",
    )

    def __init__(self, client: LimitedClient, now: float, produced_bytes: int = 0) -> None:
        self._client = client
        self._produced_bytes = produced_bytes
        self._started: float | None = now
        self._spent = 0.0
        # The end of the throttling by the quota of mutations, in seconds.
        self._throttled_until = 0.0
        self._throttle_ms = 0
        self._is_settled = False

    @property
    def fetch_bytes_max(self) -> float:
        """Bytes that a fetch may return without being throttled for certain."""
        return self._client.fetch_bytes_max

    @property
    def limits_mutations(self) -> bool:
        """True if changes of topics are counted."""
        return self._client.mutation is not None

    def started(self, now: float) -> None:
        """Start to measure: the loop works for the request again."""
        self._started = now

    def stopped(self, now: float) -> None:
        """Stop measuring: the loop turns to other work."""
        if self._started is not None:
            self._spent += now - self._started
            self._started = None

    def takes_fetch(self, size_bytes: int, now: float) -> bool:
        """Charge a fetch of `size_bytes`; return False if the response must not have records.

        Bytes that are not sent are not charged.
        """
        now_ms = now * 1000
        self.stopped(now)
        throttle_ms = self._request_throttle_ms(now_ms)
        rate = self._client.fetch
        if rate is not None:
            rate.record(size_bytes, now_ms)
            throttle_ms = max(throttle_ms, rate.throttle_ms(now_ms))
            if throttle_ms:
                rate.record(-size_bytes, now_ms)
        self._is_settled = True
        self._throttle_ms = throttle_ms
        return not throttle_ms

    def takes_mutations(self, count: int, now: float, *, is_strict: bool) -> bool:
        """Charge partitions that are created or deleted; return False if that is refused (KIP-599).

        A strict quota refuses all mutations while it is exhausted. Otherwise they are allowed, and
        the client is throttled.
        """
        bucket = self._client.mutation
        if bucket is None:
            return True
        now_ms = now * 1000
        if is_strict:
            throttle_ms = bucket.throttle_ms(now_ms)
            if not throttle_ms:
                bucket.record(count, now_ms)
        else:
            bucket.record(count, now_ms)
            throttle_ms = bucket.throttle_ms(now_ms)
        if throttle_ms:
            self._throttled_until = now + throttle_ms / 1000
        return not (is_strict and throttle_ms)

    def settle(self, now: float, *, is_answered: bool = True) -> int:
        """Return for how many milliseconds the client is throttled after this request.

        The time of a request that has no response is not charged, as in Kafka.
        """
        if self._is_settled:
            return self._throttle_ms
        self._is_settled = True
        self.stopped(now)
        now_ms = now * 1000
        waits = [round((self._throttled_until - now) * 1000)]
        if is_answered:
            waits.append(self._request_throttle_ms(now_ms))
        rate = self._client.produce
        if rate is not None and self._produced_bytes:
            rate.record(self._produced_bytes, now_ms)
            waits.append(rate.throttle_ms(now_ms))
        self._throttle_ms = max(0, *waits)
        return self._throttle_ms

    def _request_throttle_ms(self, now_ms: float) -> int:
        rate = self._client.request
        if rate is None:
            return 0
        rate.record(self._spent * 100, now_ms)
        # As in Kafka, request time alone never throttles for longer than one sample.
        return min(rate.throttle_ms(now_ms), self._client.window.sample_ms)


class ClientQuotas:
    """All quotas of a broker, and their use. Times are seconds of one clock.

    `on_change` is called after every change, with whether any client can be limited now.
    """

    def __init__(
        self, window: QuotaWindow, mutation_window: QuotaWindow, now: Callable[[], float]
    ) -> None:
        self.book = QuotaBook()
        self.generation = 0
        self.on_change: list[Callable[[bool], None]] = []
        self._window = window
        self._mutation_window = mutation_window
        self._now = now
        self._clients: dict[tuple[str, str], LimitedClient | None] = {}
        self._rates: dict[tuple[str, str, str], Rate] = {}
        self._buckets: dict[tuple[str, str, str], TokenBucket] = {}

    def settings_changed(self, entity_type: str, path: str, settings: Mapping[str, str]) -> None:
        """Apply an entity's settings from the tree; only types that can have quotas are considered."""
        if entity_type not in QUOTA_TYPES:
            return
        entity = entity_at(entity_type, path)
        if not self.book.set(entity, values_of(entity, settings)):
            return
        self.generation += 1
        self._clients.clear()
        for tell in self.on_change:
            tell(self.book.limits_clients())

    def client(self, user: str, client_id: str) -> LimitedClient | None:
        """Return the measures of a client; None if no quota applies to it."""
        key = (user, client_id)
        if key not in self._clients:
            if len(self._clients) >= _KEPT_MAX:
                self._clients.clear()
            self._clients[key] = self._find(user, client_id)
        return self._clients[key]

    def measured(self) -> list[Measured]:
        """Return the current use of every quota; for an address, the client id is the address."""
        now_ms = self._now() * 1000
        rates = [
            Measured(*key, rate.limit, used=rate.per_second(now_ms))
            for key, rate in self._rates.items()
        ]
        buckets = [
            Measured(*key, bucket.limit, tokens=bucket.tokens(now_ms))
            for key, bucket in self._buckets.items()
        ]
        return rates + buckets

    def _find(self, user: str, client_id: str) -> LimitedClient | None:
        client = LimitedClient(self._window)
        client.produce = self._rate(PRODUCER_BYTE_RATE, user, client_id)
        client.fetch = self._rate(CONSUMER_BYTE_RATE, user, client_id)
        client.request = self._rate(REQUEST_PERCENTAGE, user, client_id)
        applied = self.book.applied(CONTROLLER_MUTATION_RATE, user, client_id)
        if applied is not None:
            client.mutation = self._bucket(applied)
        measures = (client.produce, client.fetch, client.request, client.mutation)
        return None if all(measure is None for measure in measures) else client

    def _rate(self, key: str, user: str, client_id: str) -> Rate | None:
        applied = self.book.applied(key, user, client_id)
        return None if applied is None else self._shared_rate(key, applied)

    def _shared_rate(self, key: str, applied: Applied) -> Rate:
        measure_key = (key, applied.user, applied.client_id)
        rate = self._rates.get(measure_key)
        if rate is None:
            self._make_room(self._rates, self._window)
            rate = self._rates[measure_key] = Rate(applied.limit, self._window)
        rate.limit = applied.limit
        return rate

    def _bucket(self, applied: Applied) -> TokenBucket:
        measure_key = (CONTROLLER_MUTATION_RATE, applied.user, applied.client_id)
        bucket = self._buckets.get(measure_key)
        if bucket is None:
            window = self._mutation_window
            self._make_room(self._buckets, window)
            bucket = TokenBucket(applied.limit, window, self._now() * 1000)
            self._buckets[measure_key] = bucket
        bucket.limit = applied.limit
        return bucket

    def connection_throttle_ms(self, host: str) -> int:
        """Count a new connection from an address; return the delay after which to close it.

        0 means that it may stay. A connection that is closed is not counted (KIP-612).
        """
        limit = self.book.of_ip(CONNECTION_CREATION_RATE, host)
        if limit is None:
            return 0
        now_ms = self._now() * 1000
        rate = self._shared_rate(CONNECTION_CREATION_RATE, Applied(limit, "", host))
        rate.record(1, now_ms)
        throttle_ms = min(rate.throttle_ms(now_ms), self._window.sample_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def _make_room(self, measures: dict[tuple[str, str, str], M], window: QuotaWindow) -> None:
        """Drop measures that no longer affect anything, and if that is not enough, half of them."""
        if len(measures) < _KEPT_MAX:
            return
        since_ms = self._now() * 1000 - (window.samples + 1) * window.sample_ms
        for key in [key for key, measured in measures.items() if measured.used_at_ms < since_ms]:
            del measures[key]
        if len(measures) >= _KEPT_MAX:
            by_age = sorted(measures, key=lambda key: measures[key].used_at_ms)
            for key in by_age[: _KEPT_MAX // 2]:
                del measures[key]


def client_quotas(options: Snapshot, clock: Clock) -> ClientQuotas:
    """Return the quotas of a broker with these options, initially empty."""
    window = QuotaWindow(
        options.integer("quota.window.num"), 1000 * options.integer("quota.window.size.seconds")
    )
    mutation_window = QuotaWindow(
        options.integer("controller.quota.window.num"),
        1000 * options.integer("controller.quota.window.size.seconds"),
    )
    return ClientQuotas(window, mutation_window, clock.monotonic)
