"""Heartbeat (API key 12): keep a membership alive and hear about rebalances.

Versions 0-4; what each one added:

    1     throttle time
    3     static members (KIP-345)
    4     flexible
"""

from ottla.wire.schema import Message, int16, int32, string


class HeartbeatRequest(Message, api_key=12, versions=(0, 4), flexible_since=4):
    """Request of Heartbeat."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=0, default=None)


class HeartbeatResponse(Message, api_key=12, versions=(0, 4), flexible_since=4):
    """Response of Heartbeat."""

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
