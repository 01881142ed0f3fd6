"""A connection to a cluster: its settings, a pool of connections to its brokers, and a cache.

All connections to a cluster have the security of its options: the blocking ones of pages and
samples, and the connections of librdkafka's producers.

Not done: a changed file of options has no effect until the console restarts.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client.bootstrap import parse_bootstrap
from ottla.client.brokers import Brokers
from ottla.client.config.access import connection_options
from ottla.client.connection import SilentBrokers
from ottla.client.errors import Closed, NotReachable, TimedOut, Unsupported
from ottla.client.schemas.catalogue import SchemaCatalogue
from ottla.client.schemas.values import SchemaValues
from ottla.client.transport import open_producer
from ottla.security.zookeeper.login import Login

K = TypeVar("K")
T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CLIENT_ID = "ottla-console"
# More idle connections would only hold sockets; a busy console opens more for a moment.
_IDLE_MAX = 8
_PARALLEL_MAX = 8
_REFRESHING_MAX = 2
_REFRESH_AFTER_S = 0.05
_PLAINTEXT = "PLAINTEXT"
_REGISTRY_TIMEOUT_S = 3.0
_REFUSALS = frozenset(
    {
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
    }
)


class ClusterUnavailable(OttlaError):
    """No broker of a cluster responds; the message names the cluster and the cause."""


class LoginRefused(ClusterUnavailable):
    """A broker refuses the user, the password or the mechanism of a cluster's options."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A cluster as the operator configures it.

    `zookeeper` is a ZooKeeper connection string, and `zookeeper_login` its user, if any;
    `http_urls` are the base URLs of the brokers' HTTP ports by node id (Ottla only), which serve
    exact lag, search and clients. `options` are client options by their Kafka names, with
    passwords: only options of connections and of a schema registry have an effect.
    `schema_registry` is its URL, by default the option `schema.registry.url`. The constructor
    raises ConfigError for an invalid name or address, or a wrong option.
    """

    name: str
    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    zookeeper: str | None = None
    http_urls: Mapping[int, str] = field(default_factory=dict)
    zookeeper_login: Login | None = field(default=None, repr=False, kw_only=True)
    is_read_only: bool = False
    schema_registry: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"{self.name!r} cannot be the name of a cluster: use up to 64 letters, digits, "
                "dots, dashes and underscores"
            )
        parse_bootstrap(self.bootstrap)
        try:
            connection_options(self.options)
        except ConfigError as error:
            raise ConfigError(f"cluster {self.name!r}: {error}") from error

    @property
    def registry_url(self) -> str:
        """The URL of the schema registry; empty without one."""
        return self.schema_registry or self.options.get("schema.registry.url", "").strip()

    @property
    def security_protocol(self) -> str:
        """The protocol of connections to brokers: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return self.options.get("security.protocol", _PLAINTEXT).upper()

    @classmethod
    def parse(cls, text: str) -> "ClusterSettings":
        """Return the settings of `NAME=HOST:PORT[,HOST:PORT…]`; ConfigError if it is malformed."""
        name, equals, bootstrap = text.partition("=")
        if not equals:
            raise ConfigError(
                f"{text!r} is not a cluster: write NAME=HOST:PORT, as in local=localhost:9092"
            )
        return cls(name.strip(), bootstrap.strip())


class ClusterConnection:
    """One cluster: any thread may use it; `close` is idempotent, and later calls raise Closed.

    `timeout_s` bounds each call to the cluster. `clock` returns seconds since 1970 and is replaced
    in tests.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        timeout_s: float = 8.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.bootstrap = settings.bootstrap
        self.timeout_s = timeout_s
        self._options = connection_options(settings.options)
        self.schemas = _schemas_of(settings)
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: list[Brokers] = []
        self._cache: dict[object, _CachedValue] = {}
        # By the ids and by the addresses of brokers.
        self.silence = SilentBrokers(clock)
        self._closing = threading.Event()
        # Two pools: a refresh waits for requests to many brokers, which must find free threads.
        self._requests = ThreadPoolExecutor(_PARALLEL_MAX, f"console-{self.name}")
        self._refreshes = ThreadPoolExecutor(_REFRESHING_MAX, f"console-refresh-{self.name}")

    @contextmanager
    def brokers(self) -> Iterator[Brokers]:
        """Lend connections to the brokers to one thread; raises ClusterUnavailable if none
        responds, and LoginRefused.

        Other ApiErrors and Unsupported pass through.
        """
        lent = self._lend()
        is_intact = False
        try:
            yield lent
            is_intact = True
        except (ApiError, Unsupported) as error:
            is_intact = True
            if isinstance(error, ApiError) and error.code in _REFUSALS:
                raise LoginRefused(
                    f"Cluster {self.name!r} refuses the login of the console ({error}): correct "
                    "the options of SASL in its properties file (--command-config), and restart it."
                ) from error
            raise
        except (NotReachable, TimedOut) as error:
            raise ClusterUnavailable(
                f"Cluster {self.name!r} at {self.bootstrap} does not respond: {error}. Check that "
                "its brokers are running, that this machine reaches their addresses, and that "
                f"their listener has security.protocol={self.settings.security_protocol}."
            ) from error
        finally:
            self._take_back(lent, is_intact=is_intact)

    def cached(
        self, key: object, ttl_s: float, load: Callable[[], T], *, stale_s: float = 0.0
    ) -> T:
        """Return a value that is at most `ttl_s` seconds old; concurrent callers share one `load`.

        A value that is at most `stale_s` seconds older is returned, too, while another thread loads
        its successor. Errors are not cached, and the value before an error is dropped.
        """
        with self._lock:
            entry = self._cache.setdefault(key, _CachedValue())
        age = self._clock() - entry.loaded_at
        if not 0 <= age < ttl_s:
            if ttl_s <= age < ttl_s + stale_s:
                self._refresh(key, entry, load)
            else:
                with entry.lock:
                    if not 0 <= self._clock() - entry.loaded_at < ttl_s:
                        entry.value = load()
                        entry.loaded_at = self._clock()
        return cast("T", entry.value)

    def reload(self, key: object, load: Callable[[], T]) -> T:
        """Return a new value, and keep it for `cached`; callers of `cached` wait for it."""
        with self._lock:
            entry = self._cache.setdefault(key, _CachedValue())
        with entry.lock:
            value = entry.value = load()
            entry.loaded_at = self._clock()
        return value

    def peek(self, key: object, ttl_s: float, load: Callable[[], T], *, stale_s: float) -> T | None:
        """Return what `cached` returns if that needs no wait; else None, and another thread loads
        the value.
        """
        with self._lock:
            entry = self._cache.get(key)
        is_known = entry is not None and self._clock() - entry.loaded_at < ttl_s + stale_s
        if is_known:
            return self.cached(key, ttl_s, load, stale_s=stale_s)
        try:
            self._refreshes.submit(_quietly, partial(self.cached, key, ttl_s, load))
        except RuntimeError as error:
            raise Closed(f"the connection to cluster {self.name!r} is closed") from error
        return None

    def _refresh(self, key: object, entry: "_CachedValue", load: Callable[[], object]) -> None:
        with self._lock:
            if entry.is_refreshing:
                return
            entry.is_refreshing = True

        def run() -> None:
            # Python runs one thread at a time: first the page that has received the old value.
            self._closing.wait(_REFRESH_AFTER_S)
            try:
                # Not before this thread runs: loads that occupy the threads may wait for the value.
                with entry.lock:
                    entry.value = load()
                    entry.loaded_at = self._clock()
            except OttlaError:
                # The next caller loads it itself and receives the error.
                with self._lock:
                    self._cache.pop(key, None)
            finally:
                entry.is_refreshing = False

        # RuntimeError: the connection has been closed in another thread.
        with suppress(RuntimeError):
            self._refreshes.submit(run)

    def in_parallel(self, calls: Mapping[K, Callable[[], T]]) -> dict[K, T]:
        """Return the results of independent calls; raises the first error. Calls must not nest."""
        if len(calls) < 2:
            return {key: call() for key, call in calls.items()}
        futures = {key: self._requests.submit(call) for key, call in calls.items()}
        return {key: future.result() for key, future in futures.items()}

    def forget(self) -> None:
        """Empty the cache, as each change to the cluster does."""
        with self._lock:
            self._cache.clear()

    def now_ms(self) -> int:
        """Return the time in ms."""
        return int(self._clock() * 1000)

    def pause(self, seconds: float) -> None:
        """Wait; raises Closed as soon as the connection is closed."""
        if self._closing.wait(seconds):
            raise Closed(f"the connection to cluster {self.name!r} is closed")

    def producer_options(self) -> dict[str, Any]:
        """Return options of a librdkafka producer with acks=all."""
        return {
            **self._rdkafka(),
            "acks": "all",
            "partitioner": "murmur2_random",
            "message.timeout.ms": int(self.timeout_s * 1000),
            "allow.auto.create.topics": False,
        }

    def open_producer(self, options: Mapping[str, Any] | None = None) -> Any:
        """Return a new producer with `producer_options`; the caller flushes it."""
        return open_producer({**self.producer_options(), **(options or {})})

    def close(self) -> None:
        """Close every connection; idempotent."""
        with self._lock:
            self._closing.set()
            idle, self._idle = self._idle, []
            self._cache.clear()
        self._requests.shutdown(wait=False, cancel_futures=True)
        self._refreshes.shutdown(wait=False, cancel_futures=True)
        for brokers in idle:
            brokers.close()

    @property
    def _client_id(self) -> str:
        return self._options.client_id or _CLIENT_ID

    def _rdkafka(self) -> dict[str, Any]:
        return {
            **self._options.librdkafka,
            "bootstrap.servers": self.bootstrap,
            "client.id": self._client_id,
        }

    def _lend(self) -> Brokers:
        with self._lock:
            if self._closing.is_set():
                raise Closed(f"the connection to cluster {self.name!r} is closed")
            if self._idle:
                return self._idle.pop()
        opened = Brokers(
            self.bootstrap,
            timeout_s=self.timeout_s,
            client_id=self._client_id,
            security=self._options.security,
        )
        opened.silence = self.silence
        opened.settings = {**self._options.librdkafka, "client.id": self._client_id}
        return opened

    def _take_back(self, lent: Brokers, *, is_intact: bool) -> None:
        with self._lock:
            if is_intact and not self._closing.is_set() and len(self._idle) < _IDLE_MAX:
                self._idle.append(lent)
                return
        lent.close()


def _schemas_of(settings: ClusterSettings) -> SchemaValues:
    """Return the values of the cluster's schema registry; JSON Schema is read without one."""
    if not settings.registry_url:
        return SchemaValues()
    user, colon, password = settings.options.get("basic.auth.user.info", "").partition(":")
    return SchemaValues(
        SchemaCatalogue(
            settings.registry_url,
            user if colon else None,
            password if colon else None,
            timeout_s=_REGISTRY_TIMEOUT_S,
        )
    )


def _quietly(load: Callable[[], object]) -> None:
    """Load a value for the cache; the next caller that waits for it receives the error."""
    with suppress(OttlaError):
        load()


class _CachedValue:
    """A cached value; its lock makes concurrent callers wait for one load."""

    __slots__ = ("is_refreshing", "loaded_at", "lock", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_refreshing = False
        self.value: object = None
        self.loaded_at = float("-inf")
