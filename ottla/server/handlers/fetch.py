"""Fetch (key 1), versions 4-18: read record batches, waiting for them if there are none.

v4: isolation level. v5: log start offset. v7: sessions (KIP-227). v9: leader epoch fencing
(KIP-320). v11: rack (KIP-392). v12: flexible, last fetched epoch. v13: topic ids (KIP-516). v15:
replica state (KIP-903). v16: endpoints of new leaders (KIP-951). v17: directory ids. v18: high
watermark of followers. Records are sent as they are stored in the file; a read that would wait for
the disk runs in the background. If a client has exceeded its quota, the response has no records and
the throttle time.

Not done: fetches of followers are refused with CLUSTER_AUTHORIZATION_FAILED, because the sender
cannot be verified yet to be that broker (CVE-2018-1288); the diverging epoch, which only followers
use; the preferred read replica is always -1.
"""

import asyncio

from ottla.base.errors import ApiError, ErrorCode
from ottla.replication.delayed import FETCH, Watched
from ottla.replication.fetched import enough_bytes
from ottla.replication.partition import Partition
from ottla.server.context import RequestContext
from ottla.server.fetch.reading import FetchPass, read
from ottla.server.fetch.sessions import FetchPlan, PartitionFetch
from ottla.server.quotas.steps import counted
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)

API = ApiKey.FETCH
MIN_VERSION = 4
MAX_VERSION = 18

_FIRST_VERSION_WITH_ENDPOINTS = 16
# Approximate size of a partition's answer without its records, for the quota.
_PARTITION_BYTES = 50


def handle(
    context: RequestContext, request: FetchRequest
) -> "FetchResponse | asyncio.Future[FetchResponse]":
    """Answer at once if there are enough bytes, an error or no partitions; otherwise wait."""
    if _replica_id(request) >= 0:
        return FetchResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    try:
        plan = context.broker.fetch_sessions.begin(request, context.api_version)
    except ApiError as error:
        return FetchResponse(error_code=int(error.code))
    if plan.session is not None:
        context.broker.replicas.delayed.catch_up(plan.session)
    reading = read(context, request, plan)
    if reading.cold:
        reading.take_back()
        work = _read_cold(context, request, plan, reading)
        work = counted(work, context.usage, context.broker.clock)
        return context.broker.tasks.spawn(work, "cold fetch")
    is_enough = reading.size_bytes >= enough_bytes(request.min_bytes) or reading.has_error
    if is_enough or request.max_wait_ms <= 0 or plan.is_empty:
        return _respond(context, plan, reading)
    reading.take_back()
    return _park(context, request, plan, reading)


def _replica_id(request: FetchRequest) -> int:
    state = request.replica_state
    return request.replica_id if state is None else state.replica_id


async def _read_cold(
    context: RequestContext, request: FetchRequest, plan: FetchPlan, reading: FetchPass
) -> FetchResponse:
    """Read the bytes into the page cache, then read as usual."""
    for partition, offset, max_bytes in reading.cold:
        await partition.warm(offset, max_bytes)
    return _respond(context, plan, read(context, request, plan, only_if_cached=False))


class _Parked:
    """A fetch that waits for `min_bytes`; it reads again only when enough bytes may have arrived.

    It then reads the partitions that have changed, and those that had too few bytes before.
    """

    __slots__ = (
        "_context",
        "_fetches",
        "_known",
        "_min_bytes",
        "_missing_bytes",
        "_request",
        "_round",
        "_seen_bytes",
    )

    def __init__(
        self, context: RequestContext, request: FetchRequest, plan: FetchPlan, reading: FetchPass
    ) -> None:
        self._context = context
        self._request = request
        self._round = plan
        self._min_bytes = enough_bytes(request.min_bytes)
        self._missing_bytes = self._min_bytes - reading.size_bytes
        self._known = {ended[0]: ended for ended in reading.ended}
        self._fetches: dict[Watched, PartitionFetch] = {}
        self._seen_bytes: dict[Watched, int] = {}
        for fetch, partition in reading.partitions.items():
            self._fetches[partition] = fetch
            self._seen_bytes[partition] = partition.appended_bytes

    def _read(self) -> FetchPass:
        usage = self._context.usage
        if usage is not None:
            usage.started(self._context.broker.clock.monotonic())
        return read(self._context, self._request, self._round, known=self._known)

    def _grown_bytes(self, changed: Partition) -> int:
        """Return how many bytes have been appended since the last check."""
        session = self._round.session
        seen_bytes = self._seen_bytes.get(changed)
        if seen_bytes is None and session is not None:
            # It was idle until now.
            seen_bytes = session.seen_bytes.get(changed)
        self._seen_bytes[changed] = changed.appended_bytes
        return changed.appended_bytes - (seen_bytes or 0)

    def check(self, changed: Watched) -> FetchResponse | None:
        """Return the response if there are enough bytes, or the partition can no longer be read."""
        assert isinstance(changed, Partition)
        fetch = self._fetches.get(changed)
        if fetch is not None:
            self._known.pop(fetch, None)
        grown = self._grown_bytes(changed)
        self._missing_bytes -= grown
        # A change without new bytes is of another kind: records were committed, or the leader is
        # gone.
        if grown and self._missing_bytes > 0:
            return None
        reading = self._read()
        if reading.size_bytes < self._min_bytes and not reading.has_error:
            # The appended bytes are not committed yet, or exceed a limit of the request.
            self._missing_bytes = 0
            reading.take_back()
            return None
        return _respond(self._context, self._round, reading)

    def expire(self) -> FetchResponse:
        """Return the records available at the timeout."""
        reading = self._read()
        return _respond(self._context, self._round, reading)


def _park(
    context: RequestContext, request: FetchRequest, plan: FetchPlan, reading: FetchPass
) -> "asyncio.Future[FetchResponse]":
    watched: list[Watched] = []
    if plan.session is not None and plan.is_incremental:
        plan.wait_on_idle(reading.ended)
        watched.append(plan.session)
        due = set(plan.partitions)
        watched += [item for fetch, item in reading.partitions.items() if fetch in due]
    else:
        watched += reading.partitions.values()
    parked = _Parked(context, request, plan, reading)
    return context.broker.replicas.delayed.wait(
        watched,
        check=parked.check,
        expire=parked.expire,
        seconds=request.max_wait_ms / 1000,
        kind=FETCH,
    )


def _is_beyond_quota(context: RequestContext, reading: FetchPass) -> bool:
    usage = context.usage
    if usage is None:
        return False
    size_bytes = reading.size_bytes + _PARTITION_BYTES * len(reading.answers)
    return not usage.takes_fetch(size_bytes, context.broker.clock.monotonic())


def _respond(context: RequestContext, plan: FetchPlan, reading: FetchPass) -> FetchResponse:
    if _is_beyond_quota(context, reading):
        return FetchResponse(session_id=context.broker.fetch_sessions.hold_back(plan))
    context.has_errors = reading.has_error
    responses: list[FetchableTopicResponse] = []
    last: FetchableTopicResponse | None = None
    for fetch, answer in plan.tell(reading.answers):
        if last is None or last.topic != fetch.topic or last.topic_id != fetch.topic_id:
            last = _topic(fetch)
            responses.append(last)
        last.partitions.append(answer)
    plan.wait_on_idle(reading.ended)
    response = FetchResponse(session_id=plan.session_id, responses=responses)
    if reading.has_error and context.api_version >= _FIRST_VERSION_WITH_ENDPOINTS:
        _name_leaders(context, response, [answer for _, answer in reading.answers])
    return response


def _topic(fetch: PartitionFetch) -> FetchableTopicResponse:
    return FetchableTopicResponse(topic=fetch.topic, topic_id=fetch.topic_id)


def _name_leaders(
    context: RequestContext, response: FetchResponse, answers: list[PartitionData]
) -> None:
    """Add the endpoints of the new leaders of partitions that have moved (KIP-951)."""
    image = context.broker.image
    leaders = {
        answer.current_leader.leader_id for answer in answers if answer.current_leader is not None
    }
    for leader in sorted(leaders):
        broker = image.broker(leader)
        address = broker and context.address_of(broker)
        if broker and address:
            response.node_endpoints.append(
                NodeEndpoint(node_id=leader, host=address[0], port=address[1], rack=broker.rack)
            )
