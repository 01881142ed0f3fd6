"""The application: every page, in one table."""

from ottla.console.api.routes import api_routes
from ottla.console.pages import (
    alerts,
    brokers,
    clients,
    history,
    overview,
    reassignments,
    schemas,
    sql,
    start,
    streams,
    timeline,
    transactions,
    zookeeper,
)
from ottla.console.pages.access import accounts, acls, audit, quotas
from ottla.console.pages.groups import groups, offsets
from ottla.console.pages.topics import listing, messages, produce, topic
from ottla.console.state import Console
from ottla.console.web.routes import Application, application

PAGES = (
    *start.PAGES,
    *overview.PAGES,
    *brokers.PAGES,
    *clients.PAGES,
    *timeline.PAGES,
    *reassignments.PAGES,
    *listing.PAGES,
    *topic.PAGES,
    *messages.PAGES,
    *produce.PAGES,
    *schemas.PAGES,
    *groups.PAGES,
    *offsets.PAGES,
    *streams.PAGES,
    *transactions.PAGES,
    *acls.PAGES,
    *quotas.PAGES,
    *zookeeper.PAGES,
    *sql.PAGES,
    *alerts.PAGES,
    *accounts.PAGES,
    *audit.PAGES,
)
SOURCES = (
    *start.SOURCES,
    *overview.SOURCES,
    *history.SOURCES,
    *topic.SOURCES,
    *messages.SOURCES,
    *groups.SOURCES,
    *offsets.SOURCES,
    *streams.SOURCES,
    *audit.SOURCES,
    *sql.SOURCES,
)


def create_app(console: Console) -> Application:
    """Return the ASGI application of a console."""
    return application(console, PAGES, SOURCES, api_routes(console))
