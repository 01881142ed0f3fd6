"""The quorum of a KRaft cluster: the controllers that replicate its metadata (KIP-595, KIP-853)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers
from ottla.wire.messages import add_raft_voter as adding
from ottla.wire.messages import describe_quorum as describing
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

_METADATA_TOPIC = "__cluster_metadata"
_ID_BYTES = 16


class RaftEndpoint(NamedTuple):
    """A listener of a controller; its text is listener://host:port."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A replica of the metadata log; times are in milliseconds since the epoch.

    -1 is an unknown value; `directory_id` is zero if the quorum is static
    (controller.quorum.voters).
    """

    node_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """The quorum: voters are controllers, observers are brokers and controllers that do not vote.

    `endpoints` has the addresses of the controllers by id, if the brokers send them.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[int, tuple[RaftEndpoint, ...]]

    @property
    def leader(self) -> QuorumReplica:
        """The leader's replica; ApiError LEADER_NOT_AVAILABLE while none is elected."""
        for voter in self.voters:
            if voter.node_id == self.leader_id:
                return voter
        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, "The quorum has no leader.")

    def max_follower_lag(self) -> tuple[int, int]:
        """Return by how many offsets, and milliseconds, the last voter is behind the leader.

        The milliseconds are -1 if they are unknown.
        """
        leader, last = self.leader, min(self.voters, key=lambda voter: voter.log_end_offset)
        lag = leader.log_end_offset - last.log_end_offset
        if leader is last:
            return lag, 0
        if leader.last_caught_up_ms < 0 or last.last_caught_up_ms < 0:
            return lag, -1
        return lag, leader.last_caught_up_ms - last.last_caught_up_ms

    def replicas(self) -> list[tuple[QuorumReplica, str]]:
        """Return the leader, the other voters and the observers, each with its status."""
        leader = self.leader
        followers = [voter for voter in self.voters if voter is not leader]
        return [
            (leader, "Leader"),
            *((voter, "Follower") for voter in followers),
            *((observer, "Observer") for observer in self.observers),
        ]


def describe_metadata_quorum(brokers: Brokers) -> Quorum:
    """Return the leader, the voters and the observers of the metadata log."""
    partition = describing.DescribeQuorumRequestPartitionData(partition_index=0)
    topic = describing.DescribeQuorumRequestTopicData(
        topic_name=_METADATA_TOPIC, partitions=[partition]
    )
    request = describing.DescribeQuorumRequest(topics=[topic])

    def attempt() -> Quorum:
        response = brokers.ask_controller(request, describing.DescribeQuorumResponse)
        check(response.error_code, response.error_message)
        (described,) = response.topics
        (row,) = described.partitions
        check(row.error_code, row.error_message)
        return Quorum(
            leader_id=row.leader_id,
            leader_epoch=row.leader_epoch,
            high_watermark=row.high_watermark,
            voters=_replicas(row.current_voters),
            observers=_replicas(row.observers),
            endpoints={
                node.node_id: tuple(
                    RaftEndpoint(item.name, item.host, item.port) for item in node.listeners
                )
                for node in response.nodes
            },
        )

    return brokers.retry(attempt)


def add_raft_voter(
    brokers: Brokers,
    node_id: int,
    directory_id: bytes,
    endpoints: Iterable[RaftEndpoint],
    *,
    cluster_id: str | None = None,
) -> None:
    """Let a controller that runs as an observer vote; ApiError DUPLICATE_VOTER if it does.

    ApiError UNSUPPORTED_VERSION if the quorum is static, INCONSISTENT_CLUSTER_ID if `cluster_id` is
    not the cluster's.
    """
    request = adding.AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=int(brokers.timeout_s * 1000),
        voter_id=node_id,
        voter_directory_id=_checked(directory_id),
        listeners=[
            adding.Listener(name=item.listener, host=item.host, port=item.port)
            for item in endpoints
        ],
    )

    def attempt() -> None:
        response = brokers.ask_controller(request, adding.AddRaftVoterResponse)
        check(response.error_code, response.error_message)

    brokers.retry(attempt)


def remove_raft_voter(
    brokers: Brokers, node_id: int, directory_id: bytes, *, cluster_id: str | None = None
) -> None:
    """Remove a controller from the voters; ApiError VOTER_NOT_FOUND if it is none of them.

    Other errors are the same as in `add_raft_voter`.
    """
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=node_id, voter_directory_id=_checked(directory_id)
    )

    def attempt() -> None:
        response = brokers.ask_controller(request, RemoveRaftVoterResponse)
        check(response.error_code, response.error_message)

    brokers.retry(attempt)


def _replicas(rows: Iterable[describing.ReplicaState]) -> tuple[QuorumReplica, ...]:
    return tuple(
        QuorumReplica(
            row.replica_id,
            row.replica_directory_id,
            row.log_end_offset,
            row.last_fetch_timestamp,
            row.last_caught_up_timestamp,
        )
        for row in sorted(rows, key=lambda row: row.replica_id)
    )


def _checked(directory_id: bytes) -> bytes:
    if len(directory_id) != _ID_BYTES:
        raise ConfigError(
            f"a directory id has {_ID_BYTES} bytes, not {len(directory_id)}: decode the value of "
            "directory.id in meta.properties with base64.urlsafe_b64decode(value + '==')"
        )
    return directory_id
