"""The response of a fetch: which partitions it includes, and where the new leaders are."""

from ottla.server.fetch.reading import FetchContext, FetchPass
from ottla.server.fetch.sessions import FetchPlan
from ottla.server.quotas.clients import RequestUsage
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from ottla.wire.schema import first_version

_FIRST_VERSION_WITH_ENDPOINTS = first_version(FetchResponse, "node_endpoints")
# Approximate size of a partition's part of the response, without its records, for the quota.
_PARTITION_BYTES = 50


def respond(context: FetchContext, plan: FetchPlan, reading: FetchPass) -> FetchResponse:
    """Return the response; without records if the client has exceeded its quota."""
    usage = context.usage
    if usage is not None and _is_beyond_quota(context, usage, reading):
        return FetchResponse(session_id=context.broker.fetch_sessions.hold_back(plan))
    context.has_errors = reading.has_error
    response = response_of(plan, reading)
    if reading.has_error and context.api_version >= _FIRST_VERSION_WITH_ENDPOINTS:
        _name_leaders(context, response, [result for _, result in reading.results])
    return response


def response_of(plan: FetchPlan, reading: FetchPass) -> FetchResponse:
    """Return the response with the partitions that have something new for the client."""
    responses: list[FetchableTopicResponse] = []
    last: FetchableTopicResponse | None = None
    for fetch, partition_data in plan.included(reading.results):
        if last is None or last.topic != fetch.topic or last.topic_id != fetch.topic_id:
            last = FetchableTopicResponse(topic=fetch.topic, topic_id=fetch.topic_id)
            responses.append(last)
        last.partitions.append(partition_data)
    plan.wait_on_idle(reading.ended)
    return FetchResponse(session_id=plan.session_id, responses=responses)


def _is_beyond_quota(context: FetchContext, usage: RequestUsage, reading: FetchPass) -> bool:
    size_bytes = reading.size_bytes + _PARTITION_BYTES * len(reading.results)
    return not usage.takes_fetch(size_bytes, context.broker.clock.monotonic())


def _name_leaders(
    context: FetchContext, response: FetchResponse, results: list[PartitionData]
) -> None:
    """Add the endpoints of the new leaders of partitions that have moved (KIP-951)."""
    image = context.broker.current.image
    leaders = {
        result.current_leader.leader_id for result in results if result.current_leader is not None
    }
    for leader in sorted(leaders):
        broker = image.broker(leader)
        address = broker and context.address_of(broker)
        if broker and address:
            response.node_endpoints.append(
                NodeEndpoint(node_id=leader, host=address[0], port=address[1], rack=broker.rack)
            )
