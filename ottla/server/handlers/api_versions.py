"""ApiVersions (key 18), versions 0-4: the APIs and versions that this broker serves.

v0: the ranges. v1: throttle time. v2: as v1. v3: client software name and version, tagged feature
fields (KIP-511, KIP-584). v4: a feature whose lowest version is 0 may be listed (KAFKA-17011). A
request of a later version gets a version 0 response with UNSUPPORTED_VERSION (in `dispatch`).

Features: transaction.version and, if its API is served, group.version; `cluster/features.py`.

Not done: nothing; zk_migration_ready is always false.
"""

import re

from ottla.base.errors import ErrorCode
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.wire.schema import first_version

API = ApiKey.API_VERSIONS
MIN_VERSION = 0
MAX_VERSION = 4

_FIRST_VERSION_WITH_SOFTWARE = first_version(ApiVersionsRequest, "client_software_name")
# Clients of earlier versions cannot parse a feature that may be off.
_LEVEL_0_VERSION = 4

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return every served API; INVALID_REQUEST for a malformed software name."""
    if context.api_version >= _FIRST_VERSION_WITH_SOFTWARE:
        software = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(text) for text in software):
            return ApiVersionsResponse(error_code=int(ErrorCode.INVALID_REQUEST))
        # Subscriptions to client metrics may select clients by it.
        context.connection.memo.software = software
    apis = [
        ApiVersion(api_key=api.api_key, min_version=api.min_version, max_version=api.max_version)
        for api in context.broker.current.advertised_apis
    ]
    features = context.broker.features
    return ApiVersionsResponse(
        api_keys=apis,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=levels.lowest, max_version=levels.highest)
            for name, levels in features.ranges.items()
            if levels.lowest or context.api_version >= _LEVEL_0_VERSION
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in features.levels.items()
            if level
        ],
    )
