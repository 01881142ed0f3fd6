"""A broker that stores client metrics, and a connection that has named its client software."""

from types import SimpleNamespace
from typing import Any, cast

from ottla.base.options import Snapshot
from ottla.base.rng import SeededRng
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.server.context import RequestContext
from ottla.server.telemetry.clients import ClientMetrics, client_metrics


class Clock:
    """Monotonic seconds that tests advance."""

    now = 10.0

    def monotonic(self) -> float:
        return self.now


class MetricsBroker:
    """The parts of a broker that the two handlers use."""

    def __init__(self) -> None:
        self.clock = Clock()
        options = Snapshot(BROKER_OPTIONS, {"telemetry.max.bytes": 1000})
        self.client_metrics: ClientMetrics = client_metrics(options, SeededRng(3))

    def subscribe(self, **settings: str) -> None:
        """Subscribe to client metrics (dots of names as underscores)."""
        written = {name.replace("_", "."): value for name, value in settings.items()}
        self.client_metrics.settings_changed("client-metrics", "s", written)

    def context(self, software: tuple[str, str] | None = ("librdkafka", "2.6.1")) -> RequestContext:
        """Return the context of a request of the client `app`."""
        connection = SimpleNamespace(
            memo=SimpleNamespace(software=software), peer_address=("10.0.0.7", 5000)
        )
        context: Any = SimpleNamespace(broker=self, connection=connection, client_id="app")
        return cast(RequestContext, context)
