"""FindCoordinator (key 10), versions 0-6: which broker coordinates a group or a transactional id.

v1: key type, error message. v3: flexible. v4: many keys (KIP-699). v5: as v4. v6: share groups. The
first request creates __consumer_offsets, or __transaction_state, and waits for a second. In Kafka
the client has to ask again.

Not done: share groups (key type 2) are INVALID_REQUEST: Ottla has no coordinator of them.
"""

import asyncio

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import names
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ottla.wire.schema import first_version

API = ApiKey.FIND_COORDINATOR
MIN_VERSION = 0
MAX_VERSION = 6

_GROUP = 0
_TRANSACTION = 1
_FIRST_VERSION_WITH_KEYS = first_version(FindCoordinatorRequest, "coordinator_keys")
# Later requests of the connection wait as well.
_CREATION_SECONDS = 1.0

_TOPIC_OF = {
    _GROUP: names.GROUP_OFFSETS_TOPIC,
    _TRANSACTION: names.TRANSACTION_STATE_TOPIC,
}


async def handle(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Return node, host and port for each key, at the address where this client reaches it."""
    is_batched = context.api_version >= _FIRST_VERSION_WITH_KEYS
    keys = request.coordinator_keys if is_batched else [request.key]
    problem = await _problem(context, request.key_type)
    coordinators = [
        _refused(key, problem) if problem else _locate(context, request.key_type, key)
        for key in keys
    ]
    if is_batched:
        return FindCoordinatorResponse(coordinators=coordinators)
    only = coordinators[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        # As in Kafka, where the name of the code is the message of the code without a message.
        error_message=only.error_message if only.error_code else ErrorCode.NONE.name,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


async def _problem(context: RequestContext, key_type: int) -> ApiError | None:
    """Return the error that applies to every key; otherwise create the topic if needed."""
    topic = _TOPIC_OF.get(key_type)
    if topic is None:
        return ApiError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {key_type}.")
    if context.broker.image.topic(topic) is None:
        try:
            async with asyncio.timeout(_CREATION_SECONDS):
                await context.broker.controller.ensure_topic(topic)
        except TimeoutError:
            return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} is being created.")
        except ApiError as error:
            message = f"{topic} cannot be created: {error.message}"
            return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    return None


def _locate(context: RequestContext, key_type: int, key: str) -> Coordinator:
    broker = context.broker
    coordinators = broker.groups if key_type == _GROUP else broker.transactions
    leader = broker.image.broker(coordinators.coordinator_for(key))
    address = None if leader is None else context.address_of(leader)
    if leader is None or address is None:
        return _refused(key, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return Coordinator(key=key, node_id=leader.id, host=address[0], port=address[1])


def _refused(key: str, error: ApiError) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message
    )
