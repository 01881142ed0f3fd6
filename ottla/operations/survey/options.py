"""Options of one resource, and of many topics in few requests (DescribeConfigs)."""

from collections.abc import Sequence

from ottla.client.admin.configs import ConfigEntry, Resource, ResourceType, describe_config
from ottla.operations.survey.connections import ClusterConnection
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

_TOPICS_AT_A_TIME = 50


def read_options(connection: ClusterConnection, resource: Resource) -> list[ConfigEntry]:
    """Return the options of one resource with synonyms and documentation; ApiError if there is
    none.
    """
    with connection.brokers() as brokers:
        return describe_config(brokers, resource, include_synonyms=True)


def read_topic_options(
    connection: ClusterConnection, topics: Sequence[str], options: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the effective values of some options by topic; topics that fail are absent.

    Asks for some topics at a time: a broker that answers for a thousand serves no other client
    meanwhile.
    """
    values: dict[str, dict[str, str]] = {}
    for start in range(0, len(topics), _TOPICS_AT_A_TIME):
        values |= _ask(connection, topics[start : start + _TOPICS_AT_A_TIME], options)
    return values


def _ask(
    connection: ClusterConnection, topics: Sequence[str], options: Sequence[str]
) -> dict[str, dict[str, str]]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=ResourceType.TOPIC,
                resource_name=topic,
                configuration_keys=list(options),
            )
            for topic in topics
        ]
    )
    with connection.brokers() as brokers:
        response = brokers.retry(lambda: brokers.ask(request, DescribeConfigsResponse))
    return {
        row.resource_name: {item.name: item.value or "" for item in row.configs}
        for row in response.results
        if not row.error_code
    }
