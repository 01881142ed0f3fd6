"""Elections of leaders, reassignments and log directories."""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.client.admin.replicas import (
    Reassignment,
    ReplicaLogDirs,
    describe_replica_log_dirs,
    directories_of,
    elect_leaders,
    list_partition_reassignments,
)
from ottla.client.brokers import Brokers
from ottla.wire.messages import describe_log_dirs as directories
from ottla.wire.messages import list_partition_reassignments as listing
from ottla.wire.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def test_leaders_elected_before_a_repeated_request_are_returned(
    cluster: Any, brokers: Brokers
) -> None:
    """The second request finds the first partition elected already."""
    answers = [
        [ErrorCode.NONE, ErrorCode.NOT_CONTROLLER],
        [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.NONE],
    ]

    def answer(_: Any) -> ElectLeadersResponse:
        codes = answers.pop(0)
        rows = [
            PartitionResult(partition_id=number, error_code=int(code))
            for number, code in enumerate(codes)
        ]
        result = ReplicaElectionResult(topic="t", partition_result=rows)
        return ElectLeadersResponse(replica_election_results=[result])

    cluster.answers["ElectLeaders"] = answer
    assert elect_leaders(brokers) == [("t", 0), ("t", 1)]
    assert not answers


def test_reassignments_of_some_partitions_are_listed(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The request names the partitions by topic; without them it names none."""
    row = listing.OngoingPartitionReassignment(
        partition_index=1, replicas=[1, 2], adding_replicas=[2], removing_replicas=[1]
    )
    topic = listing.OngoingTopicReassignment(name="t", partitions=[row])
    cluster.answers["ListPartitionReassignments"] = lambda request: (
        listing.ListPartitionReassignmentsResponse(topics=[topic])
    )
    moves = list_partition_reassignments(brokers, [("t", 1), ("t", 0)])
    assert moves == {("t", 1): Reassignment((1, 2), (2,), (1,))}
    (requested,) = asked("ListPartitionReassignments").topics
    assert (requested.name, requested.partition_indexes) == ("t", [1, 0])
    list_partition_reassignments(brokers)
    assert asked("ListPartitionReassignments").topics is None


def test_log_directories_of_replicas_are_described(cluster: Any, brokers: Brokers) -> None:
    """A replica that is being moved is in two directories, an unknown one in none."""

    def result(path: str, *, is_future: bool) -> directories.DescribeLogDirsResult:
        row = directories.DescribeLogDirsPartition(
            partition_index=0, offset_lag=3 if is_future else 0, is_future_key=is_future
        )
        topic = directories.DescribeLogDirsTopic(name="t", partitions=[row])
        return directories.DescribeLogDirsResult(log_dir=path, topics=[topic])

    cluster.answers["DescribeLogDirs"] = lambda request: directories.DescribeLogDirsResponse(
        results=[result("/b", is_future=True), result("/a", is_future=False)]
    )
    node = cluster.node_id
    assert describe_replica_log_dirs(brokers, [("t", 0, node), ("t", 1, node)]) == {
        ("t", 0, node): ReplicaLogDirs("/a", 0, "/b", 3),
        ("t", 1, node): ReplicaLogDirs(None, -1, None, -1),
    }
    assert cluster.names().count("DescribeLogDirs") == 1


def test_stray_logs_are_not_replicas() -> None:
    """A broker of Ottla lists them as topics with the names of their folders."""
    names = ("t-0.5d41402abc4b2a76b9719d911017c592-stray", "orders-3.stray", "t-stray")
    topics = [
        directories.DescribeLogDirsTopic(
            name=name,
            partitions=[directories.DescribeLogDirsPartition(partition_index=0, partition_size=7)],
        )
        for name in names
    ]
    result = directories.DescribeLogDirsResult(log_dir="/data", topics=topics)
    (row,) = directories_of(directories.DescribeLogDirsResponse(results=[result]))
    assert row.strays == {names[0]: 7}
    assert [topic for topic, _ in row.replicas] == list(names[1:])
