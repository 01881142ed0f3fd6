"""Options of many resources in one request (DescribeConfigs)."""

from collections.abc import Sequence

from ottla.client.admin.answers import check
from ottla.client.admin.configs import ResourceType
from ottla.client.brokers import Brokers
from ottla.console.model.connections import ClusterConnection
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)

_TOPICS_AT_A_TIME = 50


def read_options(
    connection: ClusterConnection, resource_type: int, name: str
) -> list[DescribeConfigsResourceResult]:
    """Return the options of one resource with synonyms and documentation; ApiError if there is
    none.
    """
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=None
            )
        ],
        include_synonyms=True,
        include_documentation=True,
    )

    def attempt(brokers: Brokers) -> list[DescribeConfigsResourceResult]:
        if resource_type == ResourceType.BROKER and name:
            response = brokers.ask_node(int(name), request, DescribeConfigsResponse)
        else:
            response = brokers.ask(request, DescribeConfigsResponse)
        (result,) = response.results
        check(result.error_code, result.error_message)
        return sorted(result.configs, key=lambda row: row.name)

    with connection.brokers() as brokers:
        return brokers.retry(lambda: attempt(brokers))


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
