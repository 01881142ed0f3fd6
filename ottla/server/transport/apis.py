"""The served APIs: one row per module of `ottla.server.handlers`.

A handler module defines key, versions and properties of its API, so an API is added by adding its
handler. The advertised APIs come from here.
"""

from dataclasses import dataclass
from types import ModuleType

from ottla.server import handlers
from ottla.server.api_properties import ApiProperties
from ottla.server.current import AdvertisedApi

# Imports the modules that `handlers.__all__` lists.
from ottla.server.handlers import *  # noqa: F403


@dataclass(frozen=True)
class ApiRow(ApiProperties):
    """One served API: its handler module and the properties that the module declares."""

    handler: ModuleType


def row_of(handler: ModuleType) -> ApiRow:
    """Return the row of a handler module."""
    properties: ApiProperties = getattr(handler, "PROPERTIES", ApiProperties())
    return ApiRow(handler, **vars(properties))


def _key(row: ApiRow) -> int:
    return int(row.handler.API)


# By key.
ROWS: tuple[ApiRow, ...] = tuple(
    sorted((row_of(getattr(handlers, name)) for name in handlers.__all__), key=_key)
)


def advertised_apis(
    rows: tuple[ApiRow, ...] = ROWS, *, with_client_metrics: bool = False
) -> tuple[AdvertisedApi, ...]:
    """Return the APIs for the ApiVersions response, by key."""
    apis = (
        AdvertisedApi(
            int(row.handler.API),
            row.handler.MIN_VERSION if row.advertised_min is None else row.advertised_min,
            row.handler.MAX_VERSION,
        )
        for row in rows
        if with_client_metrics or not row.is_for_client_metrics
    )
    return tuple(sorted(apis))
