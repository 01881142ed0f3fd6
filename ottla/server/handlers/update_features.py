"""UpdateFeatures (key 57), versions 0-2: finalize other levels of features, all or none (KIP-584).

v0: allow_downgrade. v1: validate_only, upgrade type. v2: no results per feature.

Not done: nothing. As in Kafka 4, version 0's allow_downgrade has no effect: clients send 1 and
later.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.features import Update
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

API = ApiKey.UPDATE_FEATURES
MIN_VERSION = 0
MAX_VERSION = 2
PROPERTIES = ApiProperties(is_administrative=True)

_LAST_VERSION_WITH_RESULTS = 1


async def handle(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Write the levels to /feature; they apply to everything that follows."""
    broker = context.broker
    if not broker.controller.is_active:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    updates = {
        update.feature: Update(update.feature, update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    }
    try:
        await broker.features.update(
            list(updates.values()), broker.node_id, validate_only=request.validate_only
        )
    except ApiError as error:
        reason = (
            "The update failed for all features since the following feature had an error: "
            f"{error.message}"
        )
        return UpdateFeaturesResponse(error_code=int(error.code), error_message=reason)
    response = UpdateFeaturesResponse()
    if context.api_version <= _LAST_VERSION_WITH_RESULTS:
        names = [update.feature for update in request.feature_updates]
        response.results = [UpdatableFeatureResult(feature=name) for name in names]
    return response
