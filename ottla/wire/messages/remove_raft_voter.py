"""RemoveRaftVoter (API key 81): remove a controller from the voters of the metadata log (KIP-853).

Version 0, flexible.
"""

from ottla.wire.schema import Message, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message, api_key=81, versions=(0, 0), flexible_since=0):
    """Request of RemoveRaftVoter."""

    cluster_id: str | None = string(nullable_since=0)
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


class RemoveRaftVoterResponse(Message, api_key=81, versions=(0, 0), flexible_since=0):
    """Response of RemoveRaftVoter."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
