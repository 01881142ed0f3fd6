"""Connections to clusters: settings, a pool of broker connections, a cache, and the catalogue.

Not done: TLS and SASL, which the client's own codec (`ottla.client.brokers`) does not support.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ottla.base.errors import OttlaError
from ottla.client.brokers import Brokers

T = TypeVar("T")


class ClusterUnavailable(OttlaError):
    """No broker of a cluster responds; the message names the cluster and the cause."""


class UnknownCluster(OttlaError):
    """The catalogue has no cluster of this name."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A cluster as the operator configures it.

    `zookeeper` is a ZooKeeper connection string; `http_urls` are the base URLs of the brokers' HTTP
    ports by node id (Ottla only), where exact lag and search are served. `options` are client
    options by their Kafka names.
    """

    name: str
    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict)
    zookeeper: str | None = None
    http_urls: Mapping[int, str] = field(default_factory=dict)
    is_read_only: bool = False

    @classmethod
    def parse(cls, text: str) -> "ClusterSettings":
        """Return the settings of `NAME=HOST:PORT[,HOST:PORT…]`; ConfigError if it is malformed."""
        raise planned()


class ClusterConnection:
    """One cluster: any thread may use it; `close` is idempotent, and later calls raise Closed.

    `clock` returns seconds since 1970 and is replaced in tests.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        timeout_s: float = 10.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.bootstrap = settings.bootstrap
        self.timeout_s = timeout_s

    @contextmanager
    def brokers(self) -> Iterator[Brokers]:
        """Lend connections to the brokers to one thread; raises ClusterUnavailable if none responds."""
        raise planned()
        yield

    def cached(self, key: object, ttl_s: float, load: Callable[[], T]) -> T:
        """Return a value that is at most `ttl_s` seconds old; concurrent callers share one `load`."""
        raise planned()

    def forget(self) -> None:
        """Empty the cache, as each change to the cluster does."""

    def now_ms(self) -> int:
        """Return the time in ms."""
        raise planned()

    def open_consumer(self, options: Mapping[str, Any] | None = None) -> Any:
        """Return a new librdkafka consumer without a group; the caller closes it."""
        raise planned()

    def open_producer(self, options: Mapping[str, Any] | None = None) -> Any:
        """Return a new librdkafka producer with acks=all; the caller flushes it."""
        raise planned()

    def close(self) -> None:
        """Close every connection; idempotent."""


class ClusterCatalogue:
    """The clusters of the console by name, in the order of their addition; for any thread."""

    def __init__(self) -> None:
        self._connections: dict[str, ClusterConnection] = {}

    def add(self, connection: ClusterConnection) -> None:
        """Add a cluster; ConfigError if its name is in use."""
        raise planned()

    def remove(self, name: str) -> None:
        """Close and remove a cluster; UnknownCluster if there is none."""
        raise planned()

    def get(self, name: str) -> ClusterConnection:
        """Return a cluster; UnknownCluster if there is none."""
        raise planned()

    def names(self) -> list[str]:
        """Return the names of all clusters."""
        return list(self._connections)

    def close(self) -> None:
        """Close every connection; idempotent."""


def planned() -> OttlaError:
    """Return the error of a function whose implementation follows."""
    return OttlaError("this function has no implementation yet")
