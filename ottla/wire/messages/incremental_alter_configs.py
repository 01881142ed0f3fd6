"""IncrementalAlterConfigs (API key 44): set, delete, append to or subtract from single options
(KIP-339).

Versions 0-1; what each one added:

    1     flexible
"""

from ottla.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class AlterableConfig(Struct):
    """An element of `configs`."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable_since=0)


class AlterConfigsResource(Struct):
    """An element of `resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


class IncrementalAlterConfigsRequest(Message, api_key=44, versions=(0, 1), flexible_since=1):
    """Request of IncrementalAlterConfigs."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResourceResponse(Struct):
    """An element of `responses`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()


class IncrementalAlterConfigsResponse(Message, api_key=44, versions=(0, 1), flexible_since=1):
    """Response of IncrementalAlterConfigs."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
