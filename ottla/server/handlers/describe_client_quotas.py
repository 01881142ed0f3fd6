"""DescribeClientQuotas (key 48), versions 0-1: the quotas that match a filter (KIP-546).

v1: flexible. A component of the filter matches one name, the default, or any entity of its type;
`strict` excludes entities of further types. An invalid filter is INVALID_REQUEST, an unknown type
UNSUPPORTED_VERSION.

Not done: nothing.
"""

from ottla.base.errors import ApiError
from ottla.server.context import RequestContext
from ottla.server.quotas.book import Component
from ottla.server.quotas.entities import Entity, Values
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

API = ApiKey.DESCRIBE_CLIENT_QUOTAS
MIN_VERSION = 0
MAX_VERSION = 1


def handle(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Return the quotas that this broker enforces."""
    components = [
        Component(component.entity_type, component.match_type, component.match)
        for component in request.components
    ]
    try:
        matches = context.broker.quotas.book.find(components, strict=request.strict)
    except ApiError as error:
        return DescribeClientQuotasResponse(
            error_code=int(error.code), error_message=error.message, entries=None
        )
    return DescribeClientQuotasResponse(
        error_message=None, entries=[_entry(entity, values) for entity, values in matches]
    )


def _entry(entity: Entity, values: Values) -> EntryData:
    return EntryData(
        entity=[
            EntityData(entity_type=kind, entity_name=name) for kind, name in entity.names().items()
        ],
        values=[ValueData(key=key, value=value) for key, value in values.items()],
    )
