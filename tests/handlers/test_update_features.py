"""UpdateFeatures: all updates are applied, or none."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.server.handlers import update_features
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.handlers.logs import LogsBroker, through_codec

VERSIONS = range(update_features.MIN_VERSION, update_features.MAX_VERSION + 1)
DOWN, UP = 2, 1


@pytest.fixture
async def started(broker: LogsBroker) -> AsyncIterator[LogsBroker]:
    """Return a broker with features that is the elected controller."""
    broker.is_active = True  # type: ignore[attr-defined]
    await broker.features.start(EmbeddedTree(broker.files, broker.clock).session())
    yield broker
    await broker.tasks.close()


def request(*rows: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    updates = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in rows
    ]
    return UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)


async def ask(broker: LogsBroker, requested: UpdateFeaturesRequest, version: int) -> Any:
    """Return the response."""
    return through_codec(await broker.begin(update_features, requested, version), version)


@pytest.mark.parametrize("version", [1, 2])
async def test_level_is_changed(started: LogsBroker, version: int) -> None:
    """A level can be lowered and raised again; version 1 has a result for each feature."""
    update_request = request(("transaction.version", 0, DOWN))
    response = await ask(started, update_request, version)
    assert (response.error_code, started.features.level("transaction.version")) == (0, 0)
    names = [item.feature for item in response.results]
    assert names == (["transaction.version"] if version < 2 else [])
    update_request = request(("transaction.version", 2, UP), ("transaction.version", 2, UP))
    response = await ask(started, update_request, version)
    assert (response.error_code, len(response.results)) == (0, 2 if version < 2 else 0)
    assert started.features.level("transaction.version") == 2


async def test_rejected_update_prevents_all_updates(started: LogsBroker) -> None:
    """The top-level error is INVALID_UPDATE_VERSION, with the reason."""
    update_request = request(("transaction.version", 0, DOWN), ("metadata.version", 25, UP))
    response = await ask(started, update_request, 2)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "metadata.version" in response.error_message
    assert started.features.level("transaction.version") == 2


async def test_validate_only_changes_nothing(started: LogsBroker) -> None:
    """With validate_only all checks run, and nothing changes."""
    update_request = request(("transaction.version", 1, DOWN), validate_only=True)
    assert (await ask(started, update_request, 2)).error_code == 0
    assert started.features.level("transaction.version") == 2


async def test_version_0_cannot_lower_a_level(started: LogsBroker) -> None:
    """The field allow_downgrade is ignored, as in Kafka 4."""
    update = FeatureUpdateKey(
        feature="transaction.version", max_version_level=0, allow_downgrade=True
    )
    request = UpdateFeaturesRequest(feature_updates=[update])
    response = await ask(started, request, 0)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("version", VERSIONS)
async def test_only_the_controller_updates(broker: LogsBroker, version: int) -> None:
    """Clients look for the controller and retry."""
    broker.is_active = False  # type: ignore[attr-defined]
    with pytest.raises(ApiError) as refused:
        await broker.begin(update_features, request(), version)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
