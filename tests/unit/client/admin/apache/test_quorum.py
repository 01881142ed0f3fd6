"""The quorum of the controllers of a KRaft cluster."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.apache import quorum
from ottla.client.brokers import Brokers
from ottla.wire.messages import describe_quorum as describing
from ottla.wire.messages.add_raft_voter import AddRaftVoterResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterResponse

_ID = bytes(15) + b"\1"


def _described(**partition: Any) -> describing.DescribeQuorumResponse:
    row = describing.PartitionData(**partition)
    topic = describing.TopicData(topic_name="__cluster_metadata", partitions=[row])
    listener = describing.Listener(name="CONTROLLER", host="h", port=9093)
    node = describing.Node(node_id=1, listeners=[listener])
    return describing.DescribeQuorumResponse(topics=[topic], nodes=[node])


def test_a_quorum_is_described_with_its_replicas(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """Voters and observers are in the order of their ids, controllers with their addresses."""
    voters = [
        describing.ReplicaState(replica_id=node, replica_directory_id=_ID, log_end_offset=9)
        for node in (2, 1)
    ]
    observer = describing.ReplicaState(
        replica_id=3, log_end_offset=8, last_fetch_timestamp=4, last_caught_up_timestamp=5
    )
    cluster.answers["DescribeQuorum"] = lambda request: _described(
        leader_id=1,
        leader_epoch=6,
        high_watermark=7,
        current_voters=voters,
        observers=[observer],
    )
    described = quorum.describe_metadata_quorum(brokers)
    assert (described.leader_id, described.leader_epoch, described.high_watermark) == (1, 6, 7)
    assert [row.node_id for row in described.voters] == [1, 2]
    assert described.voters[0].directory_id == _ID
    assert described.observers == (quorum.QuorumReplica(3, bytes(16), 8, 4, 5),)
    assert described.endpoints == {1: (quorum.RaftEndpoint("CONTROLLER", "h", 9093),)}
    (topic,) = asked("DescribeQuorum").topics
    assert (topic.topic_name, topic.partitions[0].partition_index) == ("__cluster_metadata", 0)


def test_a_new_leader_of_the_quorum_is_waited_for(cluster: Any, brokers: Brokers) -> None:
    """A controller that is not the leader returns an error that passes."""
    responses = [_described(leader_id=2), _described(error_code=6)]
    cluster.answers["DescribeQuorum"] = lambda request: responses.pop()
    assert quorum.describe_metadata_quorum(brokers).leader_id == 2


def test_a_voter_is_added_with_its_endpoints(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """Without a cluster id it is not compared."""
    cluster.answers["AddRaftVoter"] = lambda request: AddRaftVoterResponse()
    endpoint = quorum.RaftEndpoint("CONTROLLER", "h", 9093)
    quorum.add_raft_voter(brokers, 4, _ID, [endpoint])
    request = asked("AddRaftVoter")
    assert (request.voter_id, request.voter_directory_id, request.cluster_id) == (4, _ID, None)
    (listener,) = request.listeners
    assert (listener.name, listener.host, listener.port) == endpoint
    assert request.ack_when_committed


def test_a_voter_that_is_none_is_not_removed(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The error has the message of the controller."""
    cluster.answers["RemoveRaftVoter"] = lambda request: RemoveRaftVoterResponse(
        error_code=127, error_message="no voter 4"
    )
    with pytest.raises(ApiError, match="no voter 4") as caught:
        quorum.remove_raft_voter(brokers, 4, _ID, cluster_id="c")
    assert caught.value.code is ErrorCode.VOTER_NOT_FOUND
    assert asked("RemoveRaftVoter").cluster_id == "c"


def test_a_directory_id_has_16_bytes(cluster: Any, brokers: Brokers) -> None:
    """The text of meta.properties is not the id; nothing is requested."""
    with pytest.raises(ConfigError, match="a directory id has 16 bytes, not 22: decode"):
        quorum.remove_raft_voter(brokers, 4, b"MkU3OEVBNTcwNTJENDM2Qk")
    assert cluster.names() == []
