"""ListConfigResources (API key 74): names of resources that can have configuration.

Versions 0-1, flexible; what each one added:

    0     client metrics subscriptions only (KIP-714)
    1     resources of the types asked for (KIP-1142)
"""

from ottla.wire.schema import Message, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, api_key=74, versions=(0, 1), flexible_since=0):
    """Request of ListConfigResources."""

    resource_types: list[int] = array(int8, since=1)


class ConfigResource(Struct):
    """An element of `config_resources`."""

    resource_name: str = string()
    resource_type: int = int8(since=1, default=16, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, versions=(0, 1), flexible_since=0):
    """Response of ListConfigResources."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
