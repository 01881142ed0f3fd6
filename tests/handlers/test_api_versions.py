"""ApiVersions: what the broker tells of itself."""

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
    """Keys and ranges are those of the table of handlers."""
    answer = await broker.ask(api_versions, request(), version)
    told = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    served = {int(row.handler.API): row for row in apis.ROWS if not row.is_for_client_metrics}
    assert told.keys() == served.keys()
    for key, (low, high) in told.items():
        if key != ApiKey.PRODUCE:
            assert (low, high) == (served[key].handler.MIN_VERSION, served[key].handler.MAX_VERSION)


async def test_produce_is_advertised_from_version_0(broker: LogsBroker) -> None:
    """Else librdkafka before 2.10 stops compressing without a word (KAFKA-18659)."""
    answer = await broker.ask(api_versions, request(), 4)
    (produce,) = [api for api in answer.api_keys if api.api_key == ApiKey.PRODUCE]
    assert (produce.min_version, produce.max_version) == (0, 13)


async def test_features_tell_what_is_finalized(broker: LogsBroker) -> None:
    """A range for each that this broker knows; a level for each that is on; their epoch."""
    broker.features.levels = {"transaction.version": 2, "group.version": 0}
    broker.features.epoch = 7
    answer = await broker.ask(api_versions, request(), 4)
    ranges = {item.name: (item.min_version, item.max_version) for item in answer.supported_features}
    assert ranges["transaction.version"] == (0, 2)
    (found,) = answer.finalized_features
    assert (found.name, found.min_version_level, found.max_version_level) == (
        "transaction.version",
        2,
        2,
    )
    assert answer.finalized_features_epoch == 7


async def test_older_clients_are_not_told_that_a_feature_may_be_off(broker: LogsBroker) -> None:
    """They cannot read a range from 0 on (KAFKA-17492); the level they can."""
    broker.features.levels = {"transaction.version": 2}
    answer = await broker.ask(api_versions, request(), 3)
    assert answer.supported_features == []
    assert [item.name for item in answer.finalized_features] == ["transaction.version"]
    assert not (await broker.ask(api_versions, request(), 2)).finalized_features


@pytest.mark.parametrize("name", ["", "-x", "x-", "a b", "ä", "a\n"])
async def test_malformed_software_names_are_refused(broker: LogsBroker, name: str) -> None:
    """Name and version follow KIP-511 from version 3 on."""
    for asked in (request(name=name), request(version=name)):
        answer = await broker.ask(api_versions, asked, 3)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert (await broker.ask(api_versions, ApiVersionsRequest(), 2)).error_code == 0


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "lib.rd-9", "0"])
async def test_proper_software_names_are_accepted(broker: LogsBroker, name: str) -> None:
    """Letters, digits, and dots and dashes inside."""
    assert (await broker.ask(api_versions, request(name=name), 4)).error_code == 0


def test_every_row_is_within_the_codec() -> None:
    """No version is promised that the codec cannot read."""
    for row in apis.ROWS:
        api = APIS[int(row.handler.API)]
        assert api.min_version <= row.handler.MIN_VERSION <= row.handler.MAX_VERSION
        assert api.max_version >= row.handler.MAX_VERSION


async def test_telemetry_is_advertised_while_it_is_asked_for(broker: LogsBroker) -> None:
    """Clients that know of it would ask, and say so in their logs (KIP-714)."""
    broker.advertised_apis = apis.advertised_apis(with_client_metrics=True)
    answer = await broker.ask(api_versions, request(), 4)
    assert {71, 72} <= {api.api_key for api in answer.api_keys}


# ShareGroupHeartbeat to ShareAcknowledge, the state of share groups, and their offsets.
SHARE_GROUPS = frozenset((76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92))
STREAMS_GROUPS = frozenset((88, 89))


@pytest.mark.parametrize("family", [SHARE_GROUPS, STREAMS_GROUPS])
async def test_a_family_of_apis_is_told_of_whole_or_not_at_all(
    broker: LogsBroker, family: frozenset[int]
) -> None:
    """A client that finds one of them takes the others for granted."""
    answer = await broker.ask(api_versions, request(), 4)
    told = {api.api_key for api in answer.api_keys}
    assert not told & family or family <= told
