"""The APIs that only Apache Kafka serves, through AdminClient: quorum, share and streams groups.

The members of the groups are single heartbeats. Delegation tokens are in test_secured_clients.py.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.base import uuids
from ottla.base.errors import ApiError, ErrorCode
from ottla.client import AdminClient, OffsetAndMetadata
from ottla.client.admin.acls import AclOperation
from ottla.client.admin.apache.quorum import RaftEndpoint
from ottla.client.admin.apache.streams_groups import SubTopology, TaskAssignment
from ottla_scripts import entry
from tests.compat import java
from tests.compat.heartbeats import LEAVING, join, share_heartbeat, streams_heartbeat

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,  # Apache Kafka takes seconds to start.
    pytest.mark.needs("java"),
]
_PATIENCE_S = 30.0
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


class DynamicNode(java.KafkaNode):
    """A node whose quorum is dynamic (KIP-853): voters can be added and removed."""

    def __init__(self, folder: Path) -> None:
        options = [
            "share.coordinator.state.topic.replication.factor=1",
            "share.coordinator.state.topic.min.isr=1",
            "share.coordinator.state.topic.num.partitions=3",
        ]
        super().__init__(folder, options, "4.3.0")
        text = self._properties.read_text()
        static = f"controller.quorum.voters=1@{self.controller}"
        dynamic = f"controller.quorum.bootstrap.servers={self.controller}"
        self._properties.write_text(text.replace(static, dynamic))
        words = ("format", "-t", _CLUSTER, "-c", str(self._properties), "--standalone")
        java.run(self.class_path, "kafka.tools.StorageTool", *words)


class DynamicController(DynamicNode):
    """A controller that is no broker, and that does not vote yet."""

    def __init__(self, folder: Path, quorum: str) -> None:
        super().__init__(folder)
        self.file = self._properties
        settings = dict(line.split("=", 1) for line in self.file.read_text().splitlines())
        settings |= {
            "process.roles": "controller",
            "node.id": "2",
            "listeners": f"CONTROLLER://{self.controller}",
            "controller.quorum.bootstrap.servers": quorum,
        }
        rows = (f"{name}={text}\n" for name, text in settings.items())
        self.file.write_text("".join(rows))
        self.port = int(self.controller.rpartition(":")[2])
        shutil.rmtree(self.data)
        words = ("format", "-t", _CLUSTER, "-c", str(self.file), "--no-initial-controllers")
        java.run(self.class_path, "kafka.tools.StorageTool", *words)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[java.KafkaNode]:
    """Apache Kafka 4.3.0, a broker that is its own controller."""
    node = DynamicNode(tmp_path_factory.mktemp("kafka"))
    node.start()
    try:
        with AdminClient(bootstrap_servers=node.bootstrap) as admin:
            admin.create_topic("t", partitions=2)
        yield node
    finally:
        node.kill()


@pytest.fixture
def admin(node: java.KafkaNode) -> Iterator[AdminClient]:
    """Return a connected client."""
    with AdminClient(bootstrap_servers=node.bootstrap) as admin:
        yield admin


def _code(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code


def test_quorum_is_described(node: java.KafkaNode, admin: AdminClient) -> None:
    """The only node is the leader, and the only voter."""
    quorum = admin.describe_metadata_quorum()
    assert quorum.leader_id == 1
    assert quorum.leader_epoch >= 1
    (voter,) = quorum.voters
    assert voter.node_id == 1
    assert any(voter.directory_id)
    assert voter.log_end_offset >= quorum.high_watermark > 0
    host, port = node.controller.split(":")
    assert quorum.endpoints == {1: (RaftEndpoint("CONTROLLER", host, int(port)),)}
    assert quorum.observers == ()


def test_voters_are_compared_with_the_quorum(node: java.KafkaNode, admin: AdminClient) -> None:
    """A voter is not added twice, and a node that does not vote is not removed."""
    (voter,) = admin.describe_metadata_quorum().voters
    host, port = node.controller.split(":")
    endpoint = RaftEndpoint("CONTROLLER", host, int(port))
    added = _code(lambda: admin.add_raft_voter(1, voter.directory_id, [endpoint]))
    assert added is ErrorCode.DUPLICATE_VOTER
    removed = _code(lambda: admin.remove_raft_voter(9, voter.directory_id))
    assert removed is ErrorCode.VOTER_NOT_FOUND
    other = _code(lambda: admin.remove_raft_voter(9, voter.directory_id, cluster_id="other"))
    assert other is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_controller_joins_the_quorum_and_leaves_it(
    node: java.KafkaNode, admin: AdminClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`kafka-metadata-quorum` adds a controller by its configuration file, and removes it."""
    controller = DynamicController(tmp_path / "controller", node.controller)
    controller.start()
    line = ["--bootstrap-server", node.bootstrap]
    add = [*line, "--command-config", str(controller.file), "add-controller"]
    deadline = time.monotonic() + _PATIENCE_S
    try:
        # At first it has not caught up with the leader.
        while entry.run("kafka-metadata-quorum", add):
            assert time.monotonic() < deadline, capsys.readouterr().err
        voters = admin.describe_metadata_quorum().voters
        assert [voter.node_id for voter in voters] == [1, 2]
        text = uuids.uuid_text(voters[1].directory_id)
        added = f"Added controller 2 with directory id {text} and endpoints: CONTROLLER://"
        assert f"{added}{controller.controller}\n" in capsys.readouterr().out
        remove = [*line, "remove-controller", "-i", "2", "-d", text]
        assert entry.run("kafka-metadata-quorum", remove) == 0
        removed = f"Removed  KRaft controller 2 with directory id {text}\n"
        assert capsys.readouterr().out == removed
        assert [voter.node_id for voter in admin.describe_metadata_quorum().voters] == [1]
    finally:
        controller.kill()


def test_cluster_is_described_with_operations_and_fenced_brokers(admin: AdminClient) -> None:
    """Without an authorizer every operation is authorized."""
    described = admin.describe_cluster(
        include_authorized_operations=True, include_fenced_brokers=True
    )
    assert [(row.node_id, row.is_fenced) for row in described.brokers] == [(1, False)]
    assert AclOperation.CLUSTER_ACTION in (described.authorized_operations or set())
    topic = admin.describe_topic("t", include_authorized_operations=True)
    assert AclOperation.WRITE in (topic.authorized_operations or set())


def test_a_share_group_is_described_and_its_offsets_are_altered(
    node: java.KafkaNode, admin: AdminClient
) -> None:
    """Offsets are altered and deleted after the members have left."""
    assert _code(lambda: admin.describe_share_group("s")) is ErrorCode.GROUP_ID_NOT_FOUND
    join(lambda epoch: share_heartbeat(node.bootstrap, "s", epoch))
    group = admin.describe_share_group("s", include_authorized_operations=True)
    (member,) = group.members
    assert (group.state, group.assignor) == ("Stable", "simple")
    assert AclOperation.READ in (group.authorized_operations or set())
    assert (member.member_id, member.rack_id, member.host) == ("member", "r1", "127.0.0.1")
    assert member.member_epoch == group.group_epoch == group.assignment_epoch
    assert member.assignment == (("t", 0), ("t", 1))
    assert _code(lambda: admin.alter_share_group_offsets("s", {("t", 0): 0})) is (
        ErrorCode.NON_EMPTY_GROUP
    )
    share_heartbeat(node.bootstrap, "s", LEAVING)
    admin.alter_share_group_offsets("s", {("t", 0): 0})
    listed = admin.list_share_group_offsets("s", [("t", 0), ("t", 1)])
    assert listed["t", 0].start_offset == 0
    assert admin.list_share_group_offsets("s")["t", 0] == listed["t", 0]
    admin.delete_share_group_offsets("s", ["t"])
    assert admin.list_share_group_offsets("s") == {}
    assert "s" in [row.group_id for row in admin.list_groups(types=["share"])]
    admin.delete_group("s")
    assert admin.list_share_group_offsets("s") == {}
    assert _code(lambda: admin.describe_share_group("s")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_share_group_is_created_by_its_offsets(admin: AdminClient) -> None:
    """It has no members, and is deleted like other groups."""
    assert admin.list_share_group_offsets("new", [("t", 0)]) == {}
    admin.alter_share_group_offsets("new", {("t", 0): 0})
    group = admin.describe_share_group("new")
    assert (group.state, group.members) == ("Empty", ())
    unknown = _code(lambda: admin.alter_share_group_offsets("new", {("nowhere", 0): 0}))
    assert unknown is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    admin.delete_group("new")
    assert _code(lambda: admin.delete_share_group_offsets("new", ["t"])) is (
        ErrorCode.GROUP_ID_NOT_FOUND
    )


def test_a_streams_group_is_described_and_its_offsets_are_altered(
    node: java.KafkaNode, admin: AdminClient
) -> None:
    """Its offsets and its deletion work like other groups'."""
    assert _code(lambda: admin.describe_streams_group("k")) is ErrorCode.GROUP_ID_NOT_FOUND
    join(lambda epoch: streams_heartbeat(node.bootstrap, "k", epoch))
    group = admin.describe_streams_group("k", include_authorized_operations=True)
    (member,) = group.members
    assert group.topology_epoch == member.topology_epoch == 3
    assert group.subtopologies == (SubTopology("0", ("t",), (), (), ()),)
    assert AclOperation.READ in (group.authorized_operations or set())
    assert (member.process_id, member.endpoint) == ("process-member", ("h", 80))
    assert member.target_assignment == TaskAssignment((("0", 0), ("0", 1)), (), ())
    assert (member.client_tags, member.is_classic) == ({"zone": "a"}, False)
    streams_heartbeat(node.bootstrap, "k", LEAVING)
    admin.alter_group_offsets("k", {("t", 0): 0, ("t", 1): OffsetAndMetadata(0, "x")})
    assert admin.list_group_offsets("k")["t", 1] == OffsetAndMetadata(0, "x")
    admin.delete_group_offsets("k", [("t", 0)])
    assert list(admin.list_group_offsets("k")) == [("t", 1)]
    assert "k" in [row.group_id for row in admin.list_groups(types=["streams"])]
    admin.delete_group("k")
    assert _code(lambda: admin.describe_streams_group("k")) is ErrorCode.GROUP_ID_NOT_FOUND
