"""DescribeConfigs (key 32), versions 1-4: the effective options of topics, of this broker and its
loggers, of subscriptions to client metrics and of groups.

v1: synonyms, and the source of each value (KIP-226). v3: type and documentation (KIP-569). v4:
flexible. A broker named "" is the cluster-wide default of all brokers.

Not done: the options of share and streams groups, which Ottla does not serve.
Another broker's options: INVALID_REQUEST, ask that broker, as in Kafka.
"""

from collections.abc import Hashable

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.names import validate_topic_name
from ottla.server.config import broker_loggers
from ottla.server.config.store import ConfigResource, Described
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

API = ApiKey.DESCRIBE_CONFIGS
MIN_VERSION = 1
MAX_VERSION = 4


def handle(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Return the options from the config store, read once for a resource that is named twice."""
    keys = [_key(resource) for resource in request.resources]
    resources = dict(zip(keys, request.resources, strict=True))
    results = {key: _describe(context, request, each) for key, each in resources.items()}
    return DescribeConfigsResponse(results=[results[key] for key in keys])


def _key(resource: DescribeConfigsResource) -> Hashable:
    keys = resource.configuration_keys
    return resource.resource_type, resource.resource_name, frozenset(keys or ())


def _describe(
    context: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    keys = frozenset(resource.configuration_keys or ()) or None
    try:
        if resource.resource_type == ConfigResource.BROKER_LOGGER:
            result.configs = _loggers(context, resource.resource_name, keys)
            return result
        described = _found(context, resource)
    except ApiError as error:
        result.error_code, result.error_message = int(error.code), error.message
        return result
    # An empty list of keys requests all of them, like null.
    result.configs = [
        _config(setting, request)
        for setting in described
        if keys is None or setting.row.name in keys
    ]
    return result


def _loggers(
    context: RequestContext, name: str, keys: frozenset[str] | None
) -> list[DescribeConfigsResourceResult]:
    broker_loggers.check_broker(name, context.broker.node_id)
    return [
        DescribeConfigsResourceResult(name=logger, value=level, config_source=broker_loggers.SOURCE)
        for logger, level in broker_loggers.levels(keys).items()
    ]


def _found(context: RequestContext, resource: DescribeConfigsResource) -> list[Described]:
    name, configs = resource.resource_name, context.broker.configs
    if resource.resource_type == ConfigResource.TOPIC:
        validate_topic_name(name)
        if context.broker.image.topic(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return configs.describe_topic(name)
    if resource.resource_type == ConfigResource.CLIENT_METRICS:
        if not name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "The name of a subscription must not be empty."
            )
        return configs.describe_client_metrics(name)
    if resource.resource_type == ConfigResource.GROUP:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "The name of a group must not be empty.")
        return configs.describe_group(name)
    if resource.resource_type != ConfigResource.BROKER:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Resources of type {resource.resource_type} have no options here: "
            f"topics ({ConfigResource.TOPIC}), brokers ({ConfigResource.BROKER}), client "
            f"metrics ({ConfigResource.CLIENT_METRICS}) and groups ({ConfigResource.GROUP}) do",
        )
    if not name:
        return configs.describe_broker_default()
    if name != str(context.broker.node_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"This is broker {context.broker.node_id}: it can describe its own options and the "
            f"default of all brokers (an empty name), not the options of {name!r}",
        )
    return configs.describe_broker()


def _config(described: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    row = described.row
    return DescribeConfigsResourceResult(
        name=row.name,
        value=described.value,
        read_only=described.is_read_only,
        config_source=int(described.source),
        is_sensitive=row.sensitive,
        synonyms=[
            DescribeConfigsSynonym(
                name=synonym.name, value=synonym.value, source=int(synonym.source)
            )
            for synonym in described.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=row.type.value,
        documentation=row.doc if request.include_documentation else None,
    )
