"""DescribeConfigs (API key 32): effective configuration of topics, brokers and other resources.

Versions 1-4; what each one added:

    1     synonyms and the source of each value (KIP-226)
    3     type and documentation of each option (KIP-569)
    4     flexible
"""

from ottla.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Struct):
    """An element of `resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable_since=0)


class DescribeConfigsRequest(Message, api_key=32, versions=(1, 4), flexible_since=4):
    """Request of DescribeConfigs."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(since=3)


class DescribeConfigsSynonym(Struct):
    """An element of `synonyms`."""

    name: str = string()
    value: str | None = string(nullable_since=0)
    source: int = int8()


class DescribeConfigsResourceResult(Struct):
    """An element of `configs`."""

    name: str = string()
    value: str | None = string(nullable_since=0)
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym)
    config_type: int = int8(since=3, ignorable=True)
    documentation: str | None = string(since=3, nullable_since=0, ignorable=True)


class DescribeConfigsResult(Struct):
    """An element of `results`."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Message, api_key=32, versions=(1, 4), flexible_since=4):
    """Response of DescribeConfigs."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
