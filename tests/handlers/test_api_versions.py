"""ApiVersions: the APIs and features of the broker."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.server.handlers import api_versions
from ottla.server.transport import apis
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.messages.api_versions import ApiVersionsRequest
from tests.handlers.logs import LogsBroker

VERSIONS = range(api_versions.MIN_VERSION, api_versions.MAX_VERSION + 1)


def request(name: str = "ottla-test", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_served_api_is_listed(broker: LogsBroker, version: int) -> None:
    """Keys and version ranges are the same as in the table of handlers."""
    response = await broker.ask(api_versions, request(), version)
    advertised = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    served = {int(row.handler.API): row for row in apis.ROWS if not row.is_for_client_metrics}
    assert advertised.keys() == served.keys()
    for key, (low, high) in advertised.items():
        if key != ApiKey.PRODUCE:
            assert (low, high) == (served[key].handler.MIN_VERSION, served[key].handler.MAX_VERSION)


async def test_produce_is_advertised_from_version_0(broker: LogsBroker) -> None:
    """Otherwise librdkafka before 2.10 stops compressing without a warning (KAFKA-18659)."""
    response = await broker.ask(api_versions, request(), 4)
    (produce,) = [api for api in response.api_keys if api.api_key == ApiKey.PRODUCE]
    assert (produce.min_version, produce.max_version) == (0, 13)


async def test_finalized_features_are_returned(broker: LogsBroker) -> None:
    """Each known feature has a range, each enabled one a level, and there is an epoch."""
    broker.features.levels = {"transaction.version": 2, "group.version": 0}
    broker.features.epoch = 7
    response = await broker.ask(api_versions, request(), 4)
    ranges = {
        item.name: (item.min_version, item.max_version) for item in response.supported_features
    }
    assert ranges["transaction.version"] == (0, 2)
    (feature,) = response.finalized_features
    assert (feature.name, feature.min_version_level, feature.max_version_level) == (
        "transaction.version",
        2,
        2,
    )
    assert response.finalized_features_epoch == 7


async def test_older_clients_get_no_feature_range_from_0(broker: LogsBroker) -> None:
    """They cannot read a range that begins at 0 (KAFKA-17492), but they can read the level."""
    broker.features.levels = {"transaction.version": 2}
    response = await broker.ask(api_versions, request(), 3)
    assert response.supported_features == []
    assert [item.name for item in response.finalized_features] == ["transaction.version"]
    assert not (await broker.ask(api_versions, request(), 2)).finalized_features


@pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "ä", "a\n"])
async def test_malformed_software_names_are_rejected(broker: LogsBroker, name: str) -> None:
    """Name and version are checked according to KIP-511 from version 3."""
    for requested in (request(name=name), request(version=name)):
        response = await broker.ask(api_versions, requested, 3)
        assert response.error_code == ErrorCode.INVALID_REQUEST
    assert (await broker.ask(api_versions, ApiVersionsRequest(), 2)).error_code == 0


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "lib.rd-9", "0"])
async def test_valid_software_names_are_accepted(broker: LogsBroker, name: str) -> None:
    """Letters and digits are allowed, with dots and dashes inside."""
    assert (await broker.ask(api_versions, request(name=name), 4)).error_code == 0


def test_every_row_has_versions_of_the_codec() -> None:
    """No version is advertised that the codec cannot decode."""
    for row in apis.ROWS:
        api = APIS[int(row.handler.API)]
        assert api.min_version <= row.handler.MIN_VERSION <= row.handler.MAX_VERSION
        assert api.max_version >= row.handler.MAX_VERSION


async def test_telemetry_is_advertised_while_a_subscription_exists(broker: LogsBroker) -> None:
    """Otherwise clients would request a subscription, and write to their logs (KIP-714)."""
    broker.current.advertised_apis = apis.advertised_apis(with_client_metrics=True)
    response = await broker.ask(api_versions, request(), 4)
    assert {71, 72} <= {api.api_key for api in response.api_keys}


# ShareGroupHeartbeat to ShareAcknowledge, the state of share groups, and their offsets.
SHARE_GROUPS = frozenset((76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92))
STREAMS_GROUPS = frozenset((88, 89))


@pytest.mark.parametrize("family", [SHARE_GROUPS, STREAMS_GROUPS])
async def test_family_of_apis_is_advertised_completely_or_not_at_all(
    broker: LogsBroker, family: frozenset[int]
) -> None:
    """A client that finds one API of a family expects the others."""
    response = await broker.ask(api_versions, request(), 4)
    advertised = {api.api_key for api in response.api_keys}
    assert not advertised & family or family <= advertised
