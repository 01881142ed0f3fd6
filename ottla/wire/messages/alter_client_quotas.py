"""AlterClientQuotas (API key 49): set or remove quotas of users, clients and addresses (KIP-546).

Versions 0-1; what each one added:

    1     flexible
"""

from ottla.wire.schema import Message, Struct, array, boolean, float64, int16, int32, string


class EntityData(Struct):
    """An element of `entity`."""

    entity_type: str = string()
    entity_name: str | None = string(nullable_since=0)


class OpData(Struct):
    """An element of `ops`."""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class AlterClientQuotasRequestEntryData(Struct):
    """An element of `entries`."""

    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Message, api_key=49, versions=(0, 1), flexible_since=1):
    """Request of AlterClientQuotas."""

    entries: list[AlterClientQuotasRequestEntryData] = array(AlterClientQuotasRequestEntryData)
    validate_only: bool = boolean()


class AlterClientQuotasResponseEntryData(Struct):
    """An element of `entries`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Message, api_key=49, versions=(0, 1), flexible_since=1):
    """Response of AlterClientQuotas."""

    throttle_time_ms: int = int32()
    entries: list[AlterClientQuotasResponseEntryData] = array(AlterClientQuotasResponseEntryData)
