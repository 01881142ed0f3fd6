"""UpdateFeatures (API key 57): change the finalized feature levels of the cluster (KIP-584).

Versions 0-2, flexible; what each one added:

    1     validate_only, upgrade type
    2     no results per feature
"""

from ottla.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    """An element of `feature_updates`."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean(until=0)
    upgrade_type: int = int8(since=1, default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions=(0, 2), flexible_since=0):
    """Request of UpdateFeatures."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(since=1)


class UpdatableFeatureResult(Struct):
    """An element of `results`."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


class UpdateFeaturesResponse(Message, api_key=57, versions=(0, 2), flexible_since=0):
    """Response of UpdateFeatures."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, until=1, ignorable=True)
