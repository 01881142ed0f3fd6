"""DescribeClientQuotas (API key 48): quotas of users, clients and addresses (KIP-546).

Versions 0-1; what each one added:

    1     flexible
"""

from ottla.wire.schema import Message, Struct, array, boolean, float64, int8, int16, int32, string


class ComponentData(Struct):
    """An element of `components`."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable_since=0)


class DescribeClientQuotasRequest(Message, api_key=48, versions=(0, 1), flexible_since=1):
    """Request of DescribeClientQuotas."""

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


class EntityData(Struct):
    """An element of `entity`."""

    entity_type: str = string()
    entity_name: str | None = string(nullable_since=0)


class ValueData(Struct):
    """An element of `values`."""

    key: str = string()
    value: float = float64()


class EntryData(Struct):
    """An element of `entries`."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(Message, api_key=48, versions=(0, 1), flexible_since=1):
    """Response of DescribeClientQuotas."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    entries: list[EntryData] | None = array(EntryData, nullable_since=0)
