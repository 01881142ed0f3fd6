"""The valid levels of features, and the updates that are rejected."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import features
from ottla.cluster.features import Range, Update, UpgradeType
from ottla.server.current import AdvertisedApi
from ottla.wire.api_keys import ApiKey

RANGES = {"transaction.version": Range(0, 2)}
UP, DOWN = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE


def test_group_version_depends_on_the_served_apis() -> None:
    """The consumer protocol (KIP-848) is disabled if its heartbeats are not served."""
    heartbeat = AdvertisedApi(int(ApiKey.CONSUMER_GROUP_HEARTBEAT), 0, 1)
    assert features.supported(()) == RANGES
    assert features.supported((heartbeat,)) == {**RANGES, "group.version": Range(0, 1)}
    assert features.defaults(features.supported((heartbeat,))) == {
        "transaction.version": 2,
        "group.version": 1,
    }


def test_level_0_means_disabled() -> None:
    """Level 0 is not stored."""
    update = Update("transaction.version", 0, DOWN)
    assert features.updated(RANGES, {"transaction.version": 2}, [update], 1) == {}
    back = Update("transaction.version", 1, UP)
    assert features.updated(RANGES, {}, [back], 1) == {"transaction.version": 1}


@pytest.mark.parametrize("upgrade_type", [UP, DOWN])
def test_update_to_the_current_level_is_valid(upgrade_type: int) -> None:
    """An update to the current level is valid with every upgrade type."""
    levels = {"transaction.version": 1}
    same = [Update("transaction.version", 1, upgrade_type)]
    assert features.updated(RANGES, levels, same, 1) == levels


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (Update("transaction.version", 1, UP), "upgrade type"),
        (Update("transaction.version", 3, UP), "only supports versions 0-2"),
        (Update("transaction.version", -1, DOWN), "less than 0"),
        (Update("metadata.version", 25, UP), "does not support this feature"),
        (Update("metadata.version", 0, UP), "does not support this feature"),
        (Update("transaction.version", 2, 0), "given upgrade type"),
        (Update("transaction.version", 2, 9), "given upgrade type"),
    ],
)
def test_rejected_levels_change_nothing(update: Update, reason: str) -> None:
    """The error is INVALID_UPDATE_VERSION, with the feature and the reason."""
    with pytest.raises(ApiError, match=reason) as refused:
        features.updated(RANGES, {"transaction.version": 2}, [update], 1)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert update.feature in refused.value.message


def test_a_downgrade_is_not_an_upgrade() -> None:
    """A request that allows a downgrade cannot upgrade."""
    with pytest.raises(ApiError, match="newer version"):
        features.updated(RANGES, {}, [Update("transaction.version", 2, DOWN)], 1)
