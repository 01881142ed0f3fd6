"""AlterClientQuotas (key 49), versions 0-1: set and remove quotas of users, client ids and
addresses (KIP-546, KIP-599, KIP-612).

v1: flexible. Each entity is changed as a whole or not at all. An entity that is named twice is
INVALID_REQUEST, and only its first entry counts. When the response is sent, this broker already
applies the change. Values must be above 0, as in Kafka 4.x. Only quotas are changed: a credential
of a user is INVALID_REQUEST, and a removal of any other key changes nothing, as in Kafka.

Not done: an ip is an address; host names are not resolved (INVALID_REQUEST).
"""

from collections.abc import Iterable

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.requests import Alteration, ConfigChange, ConfigRequest
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.quotas.entities import (
    Entity,
    checked_text,
    entity_of,
    is_removable,
    tree_path,
)
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
    OpData,
)

API = ApiKey.ALTER_CLIENT_QUOTAS
MIN_VERSION = 0
MAX_VERSION = 1
PROPERTIES = ApiProperties(is_administrative=True)

# In the order of Kafka's responses.
Names = dict[str, str | None]


async def handle(
    context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Change one entity after the other; the response names each once."""
    results: dict[frozenset[tuple[str, str | None]], AlterClientQuotasResponseEntryData] = {}
    for entry in request.entries:
        names: Names = {component.entity_type: component.entity_name for component in entry.entity}
        key = frozenset(names.items())
        error = (
            _duplicate("entity")
            if key in results
            else await _alter(context, names, entry, validate_only=request.validate_only)
        )
        results[key] = _result(names, error)
    return AlterClientQuotasResponse(entries=list(results.values()))


async def _alter(
    context: RequestContext,
    names: Names,
    entry: AlterClientQuotasRequestEntryData,
    *,
    validate_only: bool,
) -> ApiError | None:
    try:
        entity = entity_of(names)
        changes = _changes(entity, entry.ops)
        entity_type, path = tree_path(entity)
        (result,) = await context.broker.controller.alter_configs(
            [ConfigRequest(entity_type, path, changes)], validate_only=validate_only
        )
        if result.error is None and not validate_only:
            await context.broker.configs.refresh(entity_type, path)
    except ApiError as error:
        return error
    return result.error


def _changes(entity: Entity, operations: Iterable[OpData]) -> tuple[ConfigChange, ...]:
    changes: dict[str, ConfigChange] = {}
    for operation in operations:
        key = operation.key
        if key in changes:
            raise _duplicate(f"quota {key}")
        if operation.remove:
            if is_removable(entity, key):
                changes[key] = ConfigChange(key, Alteration.DELETE)
        else:
            text = checked_text(entity, key, operation.value)
            changes[key] = ConfigChange(key, Alteration.SET, text)
    return tuple(changes.values())


def _duplicate(entity: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, f"The {entity} is named more than once.")


def _result(names: Names, error: ApiError | None) -> AlterClientQuotasResponseEntryData:
    result = AlterClientQuotasResponseEntryData(
        error_message=None,
        entity=[EntityData(entity_type=kind, entity_name=names[kind]) for kind in _ordered(names)],
    )
    if error is not None:
        result.error_code, result.error_message = int(error.code), error.message
    return result


def _ordered(names: Names) -> list[str]:
    """Return the types in Kafka's order, in which the known ones happen to be already."""
    known_types = [kind for kind in ("client-id", "user", "ip") if kind in names]
    return known_types + [kind for kind in names if kind not in known_types]
