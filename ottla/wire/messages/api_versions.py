"""ApiVersions (API key 18): which APIs and versions this broker speaks; the first request of most
clients.

Versions 0-4; what each one added:

    1     throttle time in the response
    3     flexible body; client software (KIP-511), supported and finalized features (KIP-584)
    4     supported features may start at version 0 (KAFKA-17011)

The response header never has tagged fields, so that a client can read it before it knows versions.
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message, api_key=18, versions=(0, 4), flexible_since=3):
    """Request of ApiVersions."""

    client_software_name: str = string(since=3, ignorable=True)
    client_software_version: str = string(since=3, ignorable=True)


class ApiVersion(Struct):
    """An element of `api_keys`."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Struct):
    """An element of `supported_features`."""

    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


class FinalizedFeatureKey(Struct):
    """An element of `finalized_features`."""

    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


class ApiVersionsResponse(
    Message, api_key=18, versions=(0, 4), flexible_since=3, flexible_header=False
):
    """Response of ApiVersions."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, since=3, tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64(since=3, tag=1, default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, since=3, tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean(since=3, tag=3, ignorable=True)
