"""The znode catalogue, compared with the output of Apache Kafka 3.9.2's brokers and encoders."""

import json

import pytest

from ottla.base.uuids import parse_uuid
from ottla.cluster import acl_znodes, znodes
from ottla.cluster.image import BrokerImage, Endpoint, LeaderAndIsr, ReplicaAssignment

TOPIC_ID = parse_uuid("pKU-1Co7TJOQeh19VIXEJQ")
# The output of Kafka 3.9.2 for a topic of forty partitions over brokers 2 and 1.
FORTY = (
    '{"partitions":{"22":[2],"23":[1],"24":[2],"25":[1],"26":[2],"27":[1],"28":[2],"29":[1],'
    '"30":[2],"31":[1],"10":[2],"32":[2],"11":[1],"33":[1],"12":[2],"34":[2],"13":[1],"35":[1],'
    '"14":[2],"36":[2],"15":[1],"37":[1],"16":[2],"38":[2],"17":[1],"39":[1],"18":[2],"19":[1],'
    '"0":[2],"1":[1],"2":[2],"3":[1],"4":[2],"5":[1],"6":[2],"7":[1],"8":[2],"9":[1],"20":[2],'
    '"21":[1]},"topic_id":"pKU-1Co7TJOQeh19VIXEJQ","adding_replicas":{},"removing_replicas":{},'
    '"version":3}'
)
MOVING = (
    '{"partitions":{"0":[1,2],"1":[3,1,2],"2":[1,2]},"topic_id":"pKU-1Co7TJOQeh19VIXEJQ",'
    '"adding_replicas":{"1":[3]},"removing_replicas":{"1":[2]},"version":3}'
)
MOVING_ASSIGNMENT = {
    0: ReplicaAssignment((1, 2)),
    1: ReplicaAssignment((3, 1, 2), (3,), (2,)),
    2: ReplicaAssignment((1, 2)),
}
FIVE_LISTENERS = (
    Endpoint("EXT", "h", 9093, "SASL_SSL"),
    Endpoint("B", "h", 9094, "PLAINTEXT"),
    Endpoint("INTERNAL", "h", 9095, "SSL"),
    Endpoint("D", "h", 9096, "PLAINTEXT"),
    Endpoint("CONTROLLER", "h", 9097, "SASL_PLAINTEXT"),
)
FIVE_LISTENERS_JSON = (
    '{"features":{},"listener_security_protocol_map":{"B":"PLAINTEXT","INTERNAL":"SSL",'
    '"EXT":"SASL_SSL","CONTROLLER":"SASL_PLAINTEXT","D":"PLAINTEXT"},"endpoints":["EXT://h:9093",'
    '"B://h:9094","INTERNAL://h:9095","D://h:9096","CONTROLLER://h:9097"],"jmx_port":9999,'
    '"port":9094,"host":"h","version":5,"timestamp":"1795258299814"}'
)
RACK_JSON = (
    '{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    '"endpoints":["PLAINTEXT://127.0.0.1:29292"],"rack":"r1","jmx_port":-1,"port":29292,'
    '"host":"127.0.0.1","version":5,"timestamp":"1795258201082"}'
)
EIGHTEEN_SETTINGS = (
    '{"version":1,"config":{"compression.type":"1","file.delete.delay.ms":"1",'
    '"max.message.bytes":"1","message.timestamp.type":"1","min.insync.replicas":"1",'
    '"preallocate":"1","segment.jitter.ms":"1","index.interval.bytes":"1",'
    '"unclean.leader.election.enable":"1","delete.retention.ms":"1","retention.bytes":"1",'
    '"local.retention.ms":"1","cleanup.policy":"1","flush.ms":"1","segment.bytes":"1",'
    '"retention.ms":"1","flush.messages":"1","segment.index.bytes":"1"}}'
)


def test_topic_is_written_as_kafka_writes_it() -> None:
    """The bytes of a topic's node are the same as Kafka's, in the order of its hash map."""
    forty = {number: ReplicaAssignment((2 - number % 2,)) for number in range(40)}
    assert znodes.TopicNode.encode(TOPIC_ID, forty).decode() == FORTY
    assert znodes.TopicNode.encode(TOPIC_ID, MOVING_ASSIGNMENT).decode() == MOVING


def test_topic_without_an_id_is_written_without_the_field() -> None:
    """A topic from before KIP-516 stays without an id."""
    written = znodes.TopicNode.encode(None, MOVING_ASSIGNMENT).decode()
    assert written == MOVING.replace('"topic_id":"pKU-1Co7TJOQeh19VIXEJQ",', "")


def test_topic_is_read_back_in_partition_order() -> None:
    """Partition 10 comes after partition 9, whatever the order of the map was."""
    content = znodes.TopicNode.decode("t", FORTY.encode())
    assert list(content.assignment) == list(range(40))
    assert content.topic_id == TOPIC_ID
    assert znodes.TopicNode.decode("t", MOVING.encode()).assignment == MOVING_ASSIGNMENT


@pytest.mark.parametrize(
    "text",
    [
        '{"version":1,"partitions":{"0":[1,2]}}',
        '{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{}}',
    ],
)
def test_topic_of_an_older_kafka_is_decoded(text: str) -> None:
    """Versions 1 and 2 lack the id, version 1 the reassignment."""
    content = znodes.TopicNode.decode("t", text.encode())
    assert content == (None, {0: ReplicaAssignment((1, 2))})


def test_broker_is_written_as_kafka_writes_it() -> None:
    """A registration is the same as Kafka's, with and without a rack, with one listener and with
    five.
    """
    one = BrokerImage(id=1, host="127.0.0.1", port=29292, rack="r1")
    assert znodes.BrokerIdNode.encode(one, 1795258201082).decode() == RACK_JSON
    five = BrokerImage(id=5, host="h", port=9093, listener="EXT", endpoints=FIVE_LISTENERS)
    written = znodes.BrokerIdNode.encode(five, 1795258299814, jmx_port=9999)
    assert written.decode() == FIVE_LISTENERS_JSON


def test_broker_without_a_plaintext_listener_has_no_host_for_old_clients() -> None:
    """Kafka writes null and -1, because old clients could not connect anyway."""
    broker = BrokerImage(id=1, host="h", port=9093, listener="SSL", security_protocol="SSL")
    assert b'"port":-1,"host":null' in znodes.BrokerIdNode.encode(broker, 0)


def test_broker_is_read_back_with_its_epoch() -> None:
    """The czxid of the node becomes the broker epoch, and the first endpoint the default one."""
    broker = znodes.BrokerIdNode.decode(5, FIVE_LISTENERS_JSON.encode(), 77)
    assert (broker.id, broker.epoch, broker.host, broker.port) == (5, 77, "h", 9093)
    assert broker.endpoints == FIVE_LISTENERS
    assert broker.endpoint("INTERNAL") == FIVE_LISTENERS[2]
    assert broker.endpoint("NONE") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"2233345666"}',
            (Endpoint("PLAINTEXT", "h", 9092),),
        ),
        (
            '{"version":2,"host":"h","port":9092,"endpoints":["PLAINTEXT://h:9092","SSL://[::1]:9093"]}',
            (Endpoint("PLAINTEXT", "h", 9092), Endpoint("SSL", "::1", 9093, "SSL")),
        ),
        (
            '{"version":4,"endpoints":["CLIENT://h:1"],"listener_security_protocol_map":{"CLIENT":"SSL"}}',
            (Endpoint("CLIENT", "h", 1, "SSL"),),
        ),
    ],
)
def test_broker_of_an_older_kafka_is_decoded(text: str, expected: tuple[Endpoint, ...]) -> None:
    """Each version before 5 lacks some fields, none of which is required."""
    assert znodes.BrokerIdNode.decode(1, text.encode(), 3).every_endpoint() == expected


def test_partition_state_is_written_as_kafka_writes_it() -> None:
    """The recovery state is in the bytes only after an unclean election."""
    state = LeaderAndIsr(leader=1, leader_epoch=7, isr=(1, 2, 3))
    plain = b'{"controller_epoch":5,"leader":1,"version":1,"leader_epoch":7,"isr":[1,2,3]}'
    assert znodes.PartitionStateNode.encode(state, 5) == plain
    unclean = LeaderAndIsr(leader=1, leader_epoch=7, isr=(1, 2, 3), is_recovering=True)
    written = znodes.PartitionStateNode.encode(unclean, 5)
    assert written == plain.replace(b'"leader_epoch"', b'"leader_recovery_state":1,"leader_epoch"')
    assert znodes.PartitionStateNode.decode("/p", written, 0) == (unclean, 5)


def test_unknown_recovery_state_of_a_partition_is_not_clean() -> None:
    """A newer version may have written it."""
    data = b'{"controller_epoch":5,"leader":1,"leader_epoch":7,"isr":[1],"leader_recovery_state":2}'
    assert znodes.PartitionStateNode.decode("/p", data, 0)[0].is_recovering


def test_partition_epoch_is_the_version_of_the_node() -> None:
    """The partition epoch is not part of the state."""
    data = b'{"controller_epoch":5,"leader":1,"version":1,"leader_epoch":7,"isr":[1]}'
    state, controller_epoch = znodes.PartitionStateNode.decode("/p", data, 9)
    assert (state.partition_epoch, state.isr, controller_epoch) == (9, (1,), 5)


def test_controller_is_written_as_kafka_writes_it() -> None:
    """Version 2 has a field for a migration by a KRaft controller, which is not set."""
    written = znodes.ControllerNode.encode(3, 1795258201161)
    assert written == (
        b'{"version":2,"brokerid":3,"timestamp":"1795258201161","kraftControllerEpoch":-1}'
    )
    assert znodes.ControllerNode.decode(written) == 3


@pytest.mark.parametrize("data", [b"3", b'{"version":1,"brokerid":3,"timestamp":"1"}'])
def test_controller_of_an_older_kafka_is_decoded(data: bytes) -> None:
    """The first format was a bare number."""
    assert znodes.ControllerNode.decode(data) == 3


def test_settings_are_written_in_the_order_of_java_properties() -> None:
    """Eighteen settings grow the hash table once; settings of one bucket keep their order."""
    names = list(json.loads(EIGHTEEN_SETTINGS)["config"])
    written = znodes.ConfigNode.encode(dict.fromkeys(names[9:] + names[:9], "1"))
    assert written.decode() == EIGHTEEN_SETTINGS
    assert znodes.ConfigNode.decode("/config/topics/t", written) == dict.fromkeys(names, "1")


def test_settings_keep_quotes_and_other_alphabets() -> None:
    """Jackson escapes quotes and backslashes and no other characters."""
    assert (
        znodes.ConfigNode.encode({"k": 'v"\\é/'}).decode()
        == '{"version":1,"config":{"k":"v\\"\\\\é/"}}'
    )


def test_an_empty_settings_node_has_no_settings() -> None:
    """The parent node of a user's clients has no content."""
    assert znodes.ConfigNode.decode("/config/users/alice", b"") == {}


def test_names_in_settings_paths_are_sanitized_as_kafka_does() -> None:
    """Every character with a meaning in a path is escaped, except in the default entity."""
    assert znodes.ConfigNode.sanitize("my app*~/é") == "my%20app%2A%7E%2F%C3%A9"
    assert znodes.ConfigNode.desanitize("my%20app%2A%7E%2F%C3%A9") == "my app*~/é"
    assert znodes.ConfigNode.sanitize(None) == znodes.ConfigNode.DEFAULT
    assert znodes.ConfigNode.desanitize(znodes.ConfigNode.DEFAULT) is None
    assert znodes.ConfigNode.sanitize("<default>") == "%3Cdefault%3E"
    path = znodes.ConfigNode.path("users", "alice/clients/my%20app")
    assert path == "/config/users/alice/clients/my%20app"


@pytest.mark.parametrize("name", [".", "..", "../users/ann", "a/../b", "%2E%2E", "..."])
def test_name_is_one_part_of_a_path(name: str) -> None:
    """It cannot be the path of another entity."""
    sanitized = znodes.ConfigNode.sanitize(name)
    assert "/" not in sanitized
    assert sanitized not in (".", "..")
    assert znodes.ConfigNode.desanitize(sanitized) == name


def test_notifications_of_settings_are_those_of_kafka() -> None:
    """Version 2 has the path of the entity; version 1 had type and entity apart."""
    written = znodes.ConfigChangeNode.encode("users/alice/clients/my%20app")
    assert written == b'{"version":2,"entity_path":"users/alice/clients/my%20app"}'
    assert znodes.ConfigChangeNode.decode("/c", written) == ("users", "alice/clients/my%20app")
    old = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert znodes.ConfigChangeNode.decode("/c", old) == ("topics", "t")


def test_lists_of_partitions_are_written_as_kafka_writes_them() -> None:
    """ISR changes, preferred elections and reassignments share a format."""
    pairs = [("a", 0), ("b", 3)]
    text = b'{"version":1,"partitions":[{"topic":"a","partition":0},{"topic":"b","partition":3}]}'
    assert znodes.IsrChangeNode.encode(pairs) == text
    assert znodes.PreferredElectionNode.encode(pairs) == text
    assert znodes.IsrChangeNode.decode("/i", text) == pairs
    assert znodes.PreferredElectionNode.decode(text) == pairs
    targets = {("a", 0): (1, 2), ("b", 3): (3,)}
    written = znodes.ReassignPartitionsNode.encode(targets)
    assert written == (
        b'{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2]},'
        b'{"topic":"b","partition":3,"replicas":[3]}]}'
    )
    assert znodes.ReassignPartitionsNode.decode(written) == targets


def test_the_small_nodes_are_written_as_kafka_writes_them() -> None:
    """Cluster id, controller epoch, producer ids, features and failed directories."""
    assert znodes.ClusterIdNode.encode("abc") == b'{"version":"1","id":"abc"}'
    assert znodes.ClusterIdNode.decode(b'{"version":"1","id":"abc"}') == "abc"
    assert znodes.ControllerEpochNode.encode(12) == b"12"
    assert znodes.ControllerEpochNode.decode(b"12") == 12
    block = znodes.ProducerIdBlock(3, 4000, 4999)
    text = b'{"version":1,"broker":3,"block_start":"4000","block_end":"4999"}'
    assert znodes.ProducerIdBlockNode.encode(block) == text
    assert znodes.ProducerIdBlockNode.decode(text) == block
    assert znodes.ProducerIdBlockNode.decode(b"") is None
    assert znodes.FeatureNode.encode({}) == b'{"features":{},"version":2,"status":1}'
    levels = b'{"features":{"f":{"max_version_level":3}},"version":2,"status":1}'
    assert znodes.FeatureNode.encode({"f": 3}) == levels
    assert znodes.FeatureNode.decode(levels) == ({"f": 3}, 1)
    old = b'{"version":1,"features":{"f":{"min_version_level":1,"max_version_level":3}},"status":1}'
    assert znodes.FeatureNode.decode(old) == ({"f": 3}, 1)
    assert znodes.LogDirEventNode.encode(4) == b'{"version":1,"broker":4,"event":1}'
    assert znodes.LogDirEventNode.decode("/l", b'{"version":1,"broker":4,"event":1}') == 4


def test_acls_are_written_as_kafka_writes_them() -> None:
    """Literal and prefixed resources have separate trees and separate notifications."""
    entries = [
        acl_znodes.AclEntry("User:alice", "Allow", "*", "Read"),
        acl_znodes.AclEntry("User:bob", "Deny", "10.0.0.1", "Write"),
    ]
    text = (
        b'{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*",'
        b'"operation":"Read"},{"principal":"User:bob","permissionType":"Deny",'
        b'"host":"10.0.0.1","operation":"Write"}],"version":1}'
    )
    assert acl_znodes.AclNode.encode(entries) == text
    assert acl_znodes.AclNode.decode("/a", text) == entries
    assert acl_znodes.AclNode.path("literal", "Topic", "t") == "/kafka-acl/Topic/t"
    prefixed = acl_znodes.AclNode.path("prefixed", "Topic", "t")
    assert prefixed == "/kafka-acl-extended/prefixed/Topic/t"


@pytest.mark.parametrize(
    ("change", "data"),
    [
        (("literal", "TRANSACTIONAL_ID", "tx"), b"TRANSACTIONAL_ID:tx"),
        (
            ("prefixed", "TOPIC", "pre"),
            b'{"version":1,"resourceType":"TOPIC","name":"pre","patternType":"PREFIXED"}',
        ),
    ],
)
def test_notifications_of_acls_are_those_of_kafka(
    change: tuple[str, str, str], data: bytes
) -> None:
    """A change of a literal ACL is plain text, as it was before patterns existed."""
    assert acl_znodes.AclChangeNode.encode(*change) == data
    assert acl_znodes.AclChangeNode.decode("/c", data) == change


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'{"version":1}', b"\xff"])
def test_invalid_content_is_rejected_with_its_path(data: bytes) -> None:
    """The error names the path whose content is invalid."""
    with pytest.raises(znodes.UnreadableNode, match="/brokers/topics/t/partitions/0/state"):
        znodes.PartitionStateNode.decode(znodes.PartitionStateNode.path("t", 0), data, 0)


def test_persistent_paths_are_those_of_a_kafka_broker() -> None:
    """A new tree has the same paths as a new Kafka cluster's."""
    assert {"/brokers/ids", "/brokers/topics", "/brokers/seqid", "/config/ips"} < set(
        znodes.PERSISTENT_PATHS
    )
    assert len(set(znodes.PERSISTENT_PATHS)) == len(znodes.PERSISTENT_PATHS)
