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

# MetadataVersion: the releases of levels 7, 8, …
METADATA_VERSION = "metadata.version"
FIRST_LEVEL = 7
RELEASES = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2",
    "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0",
    "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
    "4.4-IV0",
)  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class Features:
    """The features by name, and the epoch of their levels, which grows with each change."""

    epoch: int
    features: tuple[Feature, ...]


def read_features(brokers: Brokers, node_id: int | None = None) -> Features:
    """Return the features of the cluster as one broker knows them: by default, any."""
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
    if node_id is not None:
        brokers.require_node(node_id)

    def attempt() -> Features:
        response = (
            brokers.ask(request, ApiVersionsResponse)
            if node_id is None
            else brokers.ask_node(node_id, request, ApiVersionsResponse)
        )
        check(response.error_code)
        levels = {row.name: row.max_version_level for row in response.finalized_features}
        features = (
            Feature(row.name, row.min_version, row.max_version, levels.get(row.name, 0))
            for row in sorted(response.supported_features, key=lambda row: row.name)
        )
        return Features(response.finalized_features_epoch, tuple(features))

    return brokers.retry(attempt)


def level_text(feature: str, level: int) -> str:
    """Return a level as text; a level of metadata.version is a release of Apache Kafka."""
    at = level - FIRST_LEVEL
    if feature != METADATA_VERSION or level == 0:
        return str(level)
    return RELEASES[at] if 0 <= at < len(RELEASES) else f"UNKNOWN [{level}]"


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
        # Version 2 has no results of features.
        for result in response.results:
            check(result.error_code, result.error_message, subject=result.feature)

    brokers.retry(attempt)
