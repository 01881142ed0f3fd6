"""AlterConfigs (API key 33): replace the whole dynamic configuration of resources;
IncrementalAlterConfigs is better.

Versions 0-2; what each one added:

    2     flexible
"""

from ottla.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    """An element of `configs`."""

    name: str = string()
    value: str | None = string(nullable_since=0)


class AlterConfigsResource(Struct):
    """An element of `resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


class AlterConfigsRequest(Message, api_key=33, versions=(0, 2), flexible_since=2):
    """Request of AlterConfigs."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResourceResponse(Struct):
    """An element of `responses`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()


class AlterConfigsResponse(Message, api_key=33, versions=(0, 2), flexible_since=2):
    """Response of AlterConfigs."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
