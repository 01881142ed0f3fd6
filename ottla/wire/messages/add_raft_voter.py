"""AddRaftVoter (API key 80): add a controller to the voters of the metadata log (KIP-853).

Versions 0-1, flexible; what each one added:

    1     a response before the new voters are committed (KIP-1186)
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, string, uint16, uuid


class Listener(Struct):
    """An element of `listeners`."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class AddRaftVoterRequest(Message, api_key=80, versions=(0, 1), flexible_since=0):
    """Request of AddRaftVoter."""

    cluster_id: str | None = string(nullable_since=0)
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean(since=1, default=True)


class AddRaftVoterResponse(Message, api_key=80, versions=(0, 1), flexible_since=0):
    """Response of AddRaftVoter."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
