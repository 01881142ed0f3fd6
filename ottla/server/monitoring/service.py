"""The monitoring port of a node: opened first and closed last, so that a long start is observable."""

import json
import platform
from collections.abc import Sequence

from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.cluster.options import metrics_options, option_tables
from ottla.metrics.exposition import CONTENT_TYPE, render
from ottla.metrics.host_names import HostNames
from ottla.net.port import Net
from ottla.server.monitoring.extensions import Extensions
from ottla.server.monitoring.health import health
from ottla.server.monitoring.http import HttpResponse, HttpServer, Request
from ottla.server.monitoring.jmx import JmxPages
from ottla.server.monitoring.scrape import Scraper
from ottla.server.monitoring.sources import Pace, Sources
from ottla.server.telemetry.clients import Pushed
from ottla.server.telemetry.pushed_metrics import ClientFamilies, client_json, readable

# More samples of clients are not served.
_CLIENT_SAMPLES_MAX = 100_000


class MonitoringService:
    """Serves the pages from `open` to `close` on the broker's loop."""

    def __init__(self, node: Sources, tasks: Tasks, options: Snapshot) -> None:
        self._node = node
        self.scraper = Scraper(node, tasks)
        jmx, extensions = JmxPages(node), Extensions(node)
        self._server = HttpServer(
            {
                "/metrics": self._metrics,
                "/metrics/clients": self._client_metrics,
                "/clients": self._clients,
                "/healthz": self._health,
                "/jmx": jmx.servlet,
                "/jmx/": jmx.jolokia,
                "/search": extensions.search,
                "/lag": extensions.lag,
            },
            tasks,
            _names(options).have,
        )

    async def open(self, net: Net, host: str, port: int) -> None:
        """Listen; raises ConfigError if that fails."""
        await self._server.open(net, host, port)

    @property
    def address(self) -> tuple[str, int]:
        """The host and port it listens on."""
        return self._server.address

    async def close(self) -> None:
        """Close every connection, also those to other brokers."""
        await self._server.close()
        self._node.close()

    async def _metrics(self, _: Request) -> HttpResponse:
        return HttpResponse(200, CONTENT_TYPE, await self.scraper.text())

    async def _client_metrics(self, _: Request) -> HttpResponse:
        """Return the metrics that clients have pushed to this broker, for Prometheus."""
        pace = Pace(self._node.clock)
        families = ClientFamilies(_CLIENT_SAMPLES_MAX)
        for pushed in self._pushed():
            for figure in readable(pushed):
                await pace.rest()
                families.add(pushed, figure)
        pieces = []
        for piece in render(families.families()):
            pieces.append(piece.encode())
            await pace.rest_if_due()
        return HttpResponse(200, CONTENT_TYPE, pieces)

    async def _clients(self, request: Request) -> HttpResponse:
        """Return the clients that have pushed metrics to this broker; `client_id` selects some."""
        clock = self._node.clock
        pace, now_ms = Pace(clock), clock.monotonic() * 1000
        client_id = request.parameters.get("client_id")
        pieces = [b'{"clients": [\n']
        for pushed in self._pushed():
            if client_id in (None, pushed.attributes.get("client_id")):
                figures = []
                for figure in readable(pushed):
                    await pace.rest()
                    figures.append(figure)
                client = json.dumps(client_json(pushed, figures, now_ms)).encode()
                pieces.append(b",\n" * (len(pieces) > 1) + client)
        return HttpResponse(200, "application/json; charset=utf-8", [*pieces, b"\n]}\n"])

    def _pushed(self) -> Sequence[Pushed]:
        broker = self._node.running_broker
        return () if broker is None else broker.client_metrics.pushed()

    async def _health(self, _: Request) -> HttpResponse:
        return health(self._node)


def _names(options: Snapshot) -> HostNames:
    """Return the names of the port of a broker with these options: also the machine's name."""
    listener = metrics_options.parse_address(options.text("metrics.listener"))
    advertised = option_tables.parse_listeners(options, "advertised.listeners")
    own = [platform.node(), *(item.host for item in advertised)]
    own += [listener[0]] if listener else []
    return HostNames(own, options.strings("metrics.allowed.hosts"))
