"""/search and /lag: the limit of searches, and errors before the first row (docs/http.md)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.server.context import Broker
from ottla.server.monitoring.http import HttpResponse, Request, Stream, plain
from ottla.server.monitoring.sources import Sources
from ottla.server.search.lag import LagReport
from ottla.server.search.request import parse_lag, parse_search
from ottla.server.search.searching import Search

CONTENT_TYPE = "application/x-ndjson"
SEARCHES_MAX = 2


class Extensions:
    """The pages of one broker."""

    def __init__(self, node: Sources) -> None:
        self._node = node
        self._searches = 0

    @property
    def _broker(self) -> Broker:
        """The broker; the node has one in the stage in which requests are not refused."""
        broker = self._node.broker
        assert broker is not None
        return broker

    async def search(self, request: Request) -> HttpResponse | Stream:
        """Return the stream of a search, or the reason why the search is not possible."""
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        node = self._node
        if not self._broker.options.boolean("search.enable"):
            return plain(
                403, "Searching is off: set search.enable=true on the broker (docs/http.md)."
            )
        if self._searches >= SEARCHES_MAX:
            return plain(503, f"{SEARCHES_MAX} searches are running already: wait, or cancel one.")
        try:
            search = Search(self._broker, node.files, parse_search(request.query))
        except ConfigError as error:
            return plain(400, str(error))
        except ApiError as error:
            is_missing = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return plain(404 if is_missing else 400, str(error))
        return Stream(CONTENT_TYPE, self._counted(search))

    async def lag(self, request: Request) -> HttpResponse | Stream:
        """Return the stream of a report of lags, or the reason why the report is not possible."""
        refusal = self._refusal()
        if refusal is not None:
            return refusal
        try:
            groups, positions = parse_lag(request.query)
        except ConfigError as error:
            return plain(400, str(error))
        node = self._node
        return Stream(CONTENT_TYPE, LagReport(self._broker, node.files, groups, positions).stream())

    async def _counted(self, search: Search) -> AsyncGenerator[bytes, None]:
        self._searches += 1
        try:
            async with aclosing(search.stream()) as lines:
                async for line in lines:
                    yield line
        finally:
            self._searches -= 1

    def _refusal(self) -> HttpResponse | None:
        if self._node.running_broker is None:
            return plain(503, "The broker is not running yet, or stops.")
        return None
