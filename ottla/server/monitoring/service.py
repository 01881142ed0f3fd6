"""The monitoring port of a node: opened first and closed last, so that a long start is observable."""

from ottla.base.tasks import Tasks
from ottla.metrics.exposition import CONTENT_TYPE
from ottla.net.port import Net
from ottla.server.monitoring.health import health
from ottla.server.monitoring.http import Answer, HttpServer, Request
from ottla.server.monitoring.jmx import JmxPages
from ottla.server.monitoring.scrape import Scraper
from ottla.server.monitoring.sources import Sources


class MonitoringService:
    """Serves the pages from `open` to `close` on the broker's loop."""

    def __init__(self, node: Sources, tasks: Tasks) -> None:
        self._node = node
        self.scraper = Scraper(node, tasks)
        jmx = JmxPages(node)
        self._server = HttpServer(
            {
                "/metrics": self._metrics,
                "/healthz": self._health,
                "/jmx": jmx.servlet,
                "/jmx/": jmx.jolokia,
            },
            tasks,
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

    async def _metrics(self, _: Request) -> Answer:
        return Answer(200, CONTENT_TYPE, await self.scraper.text())

    async def _health(self, _: Request) -> Answer:
        return health(self._node)
