"""The table of served APIs is computed from the handler modules."""

from types import ModuleType
from typing import Any

from ottla.server import handlers
from ottla.server.api_properties import ApiProperties
from ottla.server.current import AdvertisedApi
from ottla.server.transport import apis
from ottla.wire.api_keys import ApiKey


def module(key: ApiKey, **attributes: Any) -> ModuleType:
    """Return a module like a handler's."""
    handler = ModuleType(key.name.lower())
    vars(handler).update({"API": key, "MIN_VERSION": 1, "MAX_VERSION": 4} | attributes)
    return handler


def test_every_module_of_the_package_is_served_once_in_order_of_keys() -> None:
    """A new handler module needs no entry elsewhere."""
    names = [row.handler.__name__.rsplit(".", 1)[1] for row in apis.ROWS]
    assert sorted(names) == sorted(handlers.__all__)
    keys = [int(row.handler.API) for row in apis.ROWS]
    assert keys == sorted(set(keys))


def test_properties_are_those_that_the_module_declares() -> None:
    """The row has the declared properties, and the defaults of all others."""
    properties = ApiProperties(is_read_ahead=True, advertised_min=0)
    row = apis.row_of(module(ApiKey.PRODUCE, PROPERTIES=properties))
    assert (row.is_read_ahead, row.advertised_min, row.is_cached) == (True, 0, False)
    handler = module(ApiKey.HEARTBEAT)
    assert apis.row_of(handler) == apis.ApiRow(handler)


def test_properties_have_the_name_that_the_table_reads() -> None:
    """A misspelled name would give an API the defaults without an error."""
    for row in apis.ROWS:
        declared = [
            name for name, value in vars(row.handler).items() if isinstance(value, ApiProperties)
        ]
        assert declared in ([], ["PROPERTIES"]), row.handler.__name__


def test_advertised_apis_are_in_order_of_keys() -> None:
    """The order of the rows does not matter; APIs of client metrics appear only if needed."""
    rows = (
        apis.row_of(
            module(ApiKey.PUSH_TELEMETRY, PROPERTIES=ApiProperties(is_for_client_metrics=True))
        ),
        apis.row_of(module(ApiKey.FETCH)),
        apis.row_of(module(ApiKey.PRODUCE, PROPERTIES=ApiProperties(advertised_min=0))),
    )
    always = (AdvertisedApi(0, 0, 4), AdvertisedApi(1, 1, 4))
    assert apis.advertised_apis(rows) == always
    with_metrics = apis.advertised_apis(rows, with_client_metrics=True)
    assert with_metrics == (*always, AdvertisedApi(72, 1, 4))
