"""Fetch (key 1), versions 4-18: read record batches, waiting for them if there are none.

v4: isolation level. v5: log start offset. v7: sessions (KIP-227). v9: leader epoch fencing
(KIP-320). v11: rack (KIP-392). v12: flexible, last fetched epoch. v13: topic ids (KIP-516). v15:
replica state (KIP-903). v16: endpoints of new leaders (KIP-951). v17: directory ids. v18: high
watermark of followers. Records are sent as they are stored in the file; a read that would wait for
the disk runs in the background. If a client has exceeded its quota, the response has no records and
the throttle time.

Fetches of followers are in `server.fetch.followers`.

With RackAwareReplicaSelector a leader names the follower in the consumer's rack instead of sending
records (KIP-392).

Not done: a follower that fetches with version 18 does not get a response as soon as its high
watermark is outdated (KIP-1166).
"""

import asyncio
from typing import TYPE_CHECKING

from ottla.base.errors import ApiError
from ottla.base.loading import deferred_module
from ottla.replication.fetched import enough_bytes
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.fetch import followers
from ottla.server.fetch.parked import Parked, wait
from ottla.server.fetch.reading import FetchPass, read
from ottla.server.fetch.response import respond
from ottla.server.fetch.sessions import FetchPlan
from ottla.server.fetch.shortcut import FetchShortcut
from ottla.server.quotas.steps import counted
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from ottla.server.fetch import slices
else:
    slices = deferred_module("ottla.server.fetch.slices")

API = ApiKey.FETCH
MIN_VERSION = 4
MAX_VERSION = 18
PROPERTIES = ApiProperties(ends_with_connection=True, shortcut=FetchShortcut)

# More partitions are read in slices.
PARTITIONS_AT_ONCE = 1000


def handle(
    context: RequestContext, request: FetchRequest
) -> "FetchResponse | asyncio.Future[FetchResponse]":
    """Answer at once if there are enough bytes, an error or no partitions; otherwise wait."""
    if followers.replica_of(request)[0] > followers.NO_REPLICA:
        return followers.handle(context, request)
    sessions = context.broker.fetch_sessions
    try:
        plan = sessions.begin(request, context.api_version)
    except ApiError as error:
        return FetchResponse(error_code=int(error.code))
    if plan.session is not None:
        context.broker.replicas.delayed.catch_up(plan.session)
    partitions = plan.partitions
    if len(partitions) > PARTITIONS_AT_ONCE:
        work = _read_in_slices(context, request, plan)
        work = counted(work, context.usage, context.broker.clock)
        task = context.broker.tasks.spawn(work, "fetch of many partitions")
        return sessions.ended_with(plan, task)
    return sessions.ended_with(
        plan, _settle(context, request, plan, read(context, request, partitions))
    )


async def _read_in_slices(
    context: RequestContext, request: FetchRequest, plan: FetchPlan, *, only_if_cached: bool = True
) -> FetchResponse:
    """Read many partitions, a few at a time."""
    reading, has_changed = await slices.read_in_slices(
        context, request, plan, only_if_cached=only_if_cached
    )
    response = _settle(context, request, plan, reading, has_changed=has_changed)
    return await response if isinstance(response, asyncio.Future) else response


def _settle(
    context: RequestContext,
    request: FetchRequest,
    plan: FetchPlan,
    reading: FetchPass,
    *,
    has_changed: bool = False,
) -> "FetchResponse | asyncio.Future[FetchResponse]":
    """Return the response if the pass suffices for it; otherwise a future of it.

    If a partition has changed since it was read, the client does not wait, but fetches again.
    """
    if reading.cold:
        reading.take_back()
        work = _read_cold(context, request, plan, reading)
        work = counted(work, context.usage, context.broker.clock)
        return context.broker.tasks.spawn(work, "cold fetch")
    is_enough = reading.size_bytes >= enough_bytes(request.min_bytes) or reading.is_urgent
    if is_enough or has_changed or request.max_wait_ms <= 0 or plan.is_empty:
        return respond(context, plan, reading)
    reading.take_back()
    return wait(context, request, plan, reading, Parked(context, request, plan, reading))


async def _read_cold(
    context: RequestContext, request: FetchRequest, plan: FetchPlan, reading: FetchPass
) -> FetchResponse:
    """Read the bytes into the page cache, then read as usual."""
    await reading.warm()
    partitions = plan.partitions
    if len(partitions) > PARTITIONS_AT_ONCE:
        return await _read_in_slices(context, request, plan, only_if_cached=False)
    return respond(context, plan, read(context, request, partitions, only_if_cached=False))
