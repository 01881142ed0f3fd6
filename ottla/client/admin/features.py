"""Features: describe and update their levels (ApiVersions, UpdateFeatures; KIP-584)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpgradeType(IntEnum):
    """How a level may change: only upwards, or downwards with or without loss of metadata."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class Feature:
    """The levels that the brokers support, and the one that the cluster uses (0: disabled)."""

    name: str
    min_version: int
    max_version: int
    level: int


def describe_features(brokers: Brokers) -> list[Feature]:
    """Return the features of the cluster, by name."""
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")

    def attempt() -> list[Feature]:
        response = brokers.ask(request, ApiVersionsResponse)
        check(response.error_code)
        levels = {row.name: row.max_version_level for row in response.finalized_features}
        return [
            Feature(row.name, row.min_version, row.max_version, levels.get(row.name, 0))
            for row in sorted(response.supported_features, key=lambda row: row.name)
        ]

    return brokers.retry(attempt)


def update_features(
    brokers: Brokers,
    levels: Mapping[str, int],
    *,
    upgrade_type: UpgradeType = UpgradeType.UPGRADE,
    validate_only: bool = False,
) -> None:
    """Set the levels of features, all or none; ApiError says why the cluster refuses them."""
    request = UpdateFeaturesRequest(
        timeout_ms=int(brokers.timeout_s * 1000),
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )

    def attempt() -> None:
        response = brokers.ask_controller(request, UpdateFeaturesResponse)
        check(response.error_code, response.error_message)

    brokers.retry(attempt)
