"""The znode catalogue: path, encoding and decoding of every node of Apache Kafka's ZooKeeper
layout.

Only this file, `acl_znodes`, `token_znodes` and `secured_znodes` contain paths. Each class is one
node. Nodes are encoded in Kafka 3.9's bytes; `decode` also reads every older version that its
brokers can read, as its docstring lists. Values in, values out: this module does not access the
tree. Follows kafka.zk.ZkData.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from ottla.base.uuids import parse_uuid, uuid_text
from ottla.cluster.image import BrokerImage, Endpoint, LeaderAndIsr, ReplicaAssignment
from ottla.cluster.jvm_order import (
    properties_order,
    scala_immutable_map_order,
    scala_map_order,
)
from ottla.cluster.zk.port import CoordinationError

TopicPartition = tuple[str, int]


class UnreadableNode(CoordinationError):
    """A node has content that is not valid for its path: written by another program or a newer
    version.
    """


class _Content(dict[str, Any]):
    """The fields of a node; a required field that is missing makes the node unreadable."""

    def __init__(self, path: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._path = path

    def __missing__(self, key: str) -> Any:
        raise UnreadableNode(self._path)


def encode_json(value: Any) -> bytes:
    """Return the bytes that Jackson writes for these fields."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode_json(path: str, data: bytes) -> dict[str, Any]:
    """Return the fields of a node's content; raise UnreadableNode if it has no content."""
    try:
        value = json.loads(data)
    except ValueError as error:
        raise UnreadableNode(path) from error
    if not isinstance(value, dict):
        raise UnreadableNode(path)
    return _Content(path, value)


class ClusterIdNode:
    """The cluster id, which the first broker of a cluster generates."""

    PATH = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        """Return the content; the version is a string in this node, unlike in all others."""
        return encode_json({"version": "1", "id": cluster_id})

    @staticmethod
    def decode(data: bytes) -> str:
        """Return the cluster id."""
        return str(decode_json(ClusterIdNode.PATH, data)["id"])


class ControllerNode:
    """Ephemeral: the broker that owns the node is the controller."""

    PATH = "/controller"

    @staticmethod
    def encode(broker_id: int, timestamp_ms: int) -> bytes:
        """Return the content, version 2; a KRaft controller epoch of -1 means that no KRaft
        controller exists.
        """
        return encode_json(
            {
                "version": 2,
                "brokerid": broker_id,
                "timestamp": str(timestamp_ms),
                "kraftControllerEpoch": -1,
            }
        )

    @staticmethod
    def decode(data: bytes) -> int:
        """Return the broker id. Version 1 lacks `kraftControllerEpoch`; the first was a bare id."""
        if data.strip().isdigit():
            return int(data)
        return int(decode_json(ControllerNode.PATH, data)["brokerid"])


class ControllerEpochNode:
    """The number of controllers so far; its node version guards every write of a controller."""

    PATH = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        """Return the content: the number in digits."""
        return b"%d" % epoch

    @staticmethod
    def decode(data: bytes) -> int:
        """Return the epoch."""
        return int(data)


class BrokerIdsNode:
    """Parent of the registrations."""

    PATH = "/brokers/ids"


class BrokerSequenceIdNode:
    """Written only to increment its version, which numbers brokers that have no configured id."""

    PATH = "/brokers/seqid"


class BrokerIdNode:
    """Ephemeral: the registration of a live broker; its czxid is the broker epoch."""

    @staticmethod
    def path(broker_id: int) -> str:
        """Return the path of one broker."""
        return f"{BrokerIdsNode.PATH}/{broker_id}"

    @staticmethod
    def encode(broker: BrokerImage, timestamp_ms: int, jmx_port: int = -1) -> bytes:
        """Return the content, version 5. Old clients read `host` and `port`: a PLAINTEXT endpoint."""
        endpoints = broker.every_endpoint()
        plain = next(
            (endpoint for endpoint in endpoints if endpoint.security_protocol == "PLAINTEXT"), None
        )
        protocols = {endpoint.listener: endpoint.security_protocol for endpoint in endpoints}
        value: dict[str, Any] = {
            "features": {},
            "listener_security_protocol_map": {
                name: protocols[name] for name in scala_immutable_map_order(protocols)
            },
            "endpoints": [_connection_text(endpoint) for endpoint in endpoints],
        }
        if broker.rack is not None:
            value["rack"] = broker.rack
        value |= {
            "jmx_port": jmx_port,
            "port": plain.port if plain else -1,
            "host": plain.host if plain else None,
            "version": 5,
            "timestamp": str(timestamp_ms),
        }
        return encode_json(value)

    @staticmethod
    def decode(broker_id: int, data: bytes, epoch: int) -> BrokerImage:
        """Return the broker with its epoch (the node's czxid).

        Version 1 has `host` and `port` only, version 2 adds `endpoints` named by their protocol,
        version 3 `rack`, version 4 `listener_security_protocol_map`, version 5 `features`.
        """
        value = decode_json(BrokerIdNode.path(broker_id), data)
        if "endpoints" in value:
            protocols = value.get("listener_security_protocol_map") or {}
            endpoints = tuple(_endpoint(text, protocols) for text in value["endpoints"])
        else:
            endpoints = (Endpoint("PLAINTEXT", value["host"], value["port"]),)
        first = endpoints[0]
        return BrokerImage(
            id=broker_id,
            host=first.host,
            port=first.port,
            rack=value.get("rack"),
            epoch=epoch,
            listener=first.listener,
            security_protocol=first.security_protocol,
            endpoints=endpoints,
            registered_ms=_time_ms(value.get("timestamp")),
        )


def _time_ms(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def _connection_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return Endpoint(listener, host.strip("[]"), int(port), protocols.get(listener, listener))


def _in_scala_order(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {key: mapping[key] for key in scala_map_order(mapping)}


class TopicsNode:
    """Parent of the topics."""

    PATH = "/brokers/topics"


class TopicContent(NamedTuple):
    """The content of a topic's node; `topic_id` is None in topics from before KIP-516."""

    topic_id: bytes | None
    assignment: dict[int, ReplicaAssignment]


class TopicNode:
    """The replica assignment of a topic; the topic exists if its node exists."""

    @staticmethod
    def path(topic: str) -> str:
        """Return the path of one topic."""
        return f"{TopicsNode.PATH}/{topic}"

    @staticmethod
    def encode(topic_id: bytes | None, assignment: Mapping[int, ReplicaAssignment]) -> bytes:
        """Return the content, version 3."""
        rows = {str(number): replicas for number, replicas in assignment.items()}
        adding = {key: list(row.adding_replicas) for key, row in rows.items()}
        removing = {key: list(row.removing_replicas) for key, row in rows.items()}
        value: dict[str, Any] = {
            "partitions": {key: list(rows[key].replicas) for key in scala_map_order(rows)}
        }
        if topic_id is not None:
            value["topic_id"] = uuid_text(topic_id)
        value["adding_replicas"] = _in_scala_order({k: v for k, v in adding.items() if v})
        value["removing_replicas"] = _in_scala_order({k: v for k, v in removing.items() if v})
        value["version"] = 3
        return encode_json(value)

    @staticmethod
    def decode(topic: str, data: bytes) -> TopicContent:
        """Return id and assignment, partitions in order.

        Version 1 has `partitions` only, version 2 adds `adding_replicas` and `removing_replicas`
        (KIP-455), version 3 `topic_id` (KIP-516).
        """
        value = decode_json(TopicNode.path(topic), data)
        adding = value.get("adding_replicas") or {}
        removing = value.get("removing_replicas") or {}
        partitions = value.get("partitions") or {}
        assignment = {
            int(key): ReplicaAssignment(
                tuple(partitions[key]), tuple(adding.get(key, ())), tuple(removing.get(key, ()))
            )
            for key in sorted(partitions, key=int)
        }
        text = value.get("topic_id")
        return TopicContent(parse_uuid(text) if text else None, assignment)


class PartitionsNode:
    """Parent of a topic's partitions; it and each partition's node are empty."""

    @staticmethod
    def path(topic: str) -> str:
        """Return the path of the parent."""
        return f"{TopicNode.path(topic)}/partitions"

    @staticmethod
    def partition_path(topic: str, partition: int) -> str:
        """Return the path of one partition, the parent of its state."""
        return f"{PartitionsNode.path(topic)}/{partition}"


class PartitionStateNode:
    """Leader and ISR of a partition; its node version is the partition epoch."""

    @staticmethod
    def path(topic: str, partition: int) -> str:
        """Return the path of one partition's state."""
        return f"{PartitionsNode.partition_path(topic, partition)}/state"

    @staticmethod
    def encode(state: LeaderAndIsr, controller_epoch: int) -> bytes:
        """Return the content, version 1; with `leader_recovery_state` only while the partition is
        recovering.
        """
        value: dict[str, Any] = {
            "controller_epoch": controller_epoch,
            "leader": state.leader,
            "version": 1,
        }
        if state.is_recovering:
            value["leader_recovery_state"] = 1
        value |= {"leader_epoch": state.leader_epoch, "isr": list(state.isr)}
        return encode_json(value)

    @staticmethod
    def decode(path: str, data: bytes, version: int) -> tuple[LeaderAndIsr, int]:
        """Return the state with its partition epoch, and the controller epoch that wrote it.

        There is only version 1; KIP-704 added `leader_recovery_state` to it.
        """
        value = decode_json(path, data)
        state = LeaderAndIsr(
            leader=value["leader"],
            leader_epoch=value["leader_epoch"],
            isr=tuple(value["isr"]),
            partition_epoch=version,
            # An unknown state may be unclean, too.
            is_recovering=value.get("leader_recovery_state", 0) != 0,
        )
        return state, int(value["controller_epoch"])


class DeleteTopicsNode:
    """Parent of the requests to delete a topic: an empty node with the topic's name."""

    PATH = "/admin/delete_topics"

    @staticmethod
    def path(topic: str) -> str:
        """Return the path of the request to delete one topic."""
        return f"{DeleteTopicsNode.PATH}/{topic}"


class ReassignPartitionsNode:
    """A reassignment as requested before KIP-455; it exists until the reassignment is complete."""

    PATH = "/admin/reassign_partitions"

    @staticmethod
    def encode(targets: Mapping[TopicPartition, Iterable[int]]) -> bytes:
        """Return the content, version 1."""
        rows = [
            {"topic": topic, "partition": partition, "replicas": list(replicas)}
            for (topic, partition), replicas in targets.items()
        ]
        return encode_json({"version": 1, "partitions": rows})

    @staticmethod
    def decode(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the target replicas of each partition."""
        rows = decode_json(ReassignPartitionsNode.PATH, data).get("partitions") or []
        return {(row["topic"], row["partition"]): tuple(row["replicas"]) for row in rows}


def _encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    rows = [{"topic": topic, "partition": partition} for topic, partition in partitions]
    return encode_json({"version": 1, "partitions": rows})


def _decode_partitions(path: str, data: bytes) -> list[TopicPartition]:
    rows = decode_json(path, data).get("partitions") or []
    return [(row["topic"], row["partition"]) for row in rows]


class PreferredElectionNode:
    """A request to elect the preferred replicas as leaders."""

    PATH = "/admin/preferred_replica_election"

    @staticmethod
    def encode(partitions: Iterable[TopicPartition]) -> bytes:
        """Return the content, version 1."""
        return _encode_partitions(partitions)

    @staticmethod
    def decode(data: bytes) -> list[TopicPartition]:
        """Return the partitions to elect."""
        return _decode_partitions(PreferredElectionNode.PATH, data)


class IsrChangeNode:
    """Sequential: a leader reports to the controller which ISRs it has changed."""

    PARENT = "/isr_change_notification"
    PREFIX = f"{PARENT}/isr_change_"

    @staticmethod
    def encode(partitions: Iterable[TopicPartition]) -> bytes:
        """Return the content, version 1."""
        return _encode_partitions(partitions)

    @staticmethod
    def decode(path: str, data: bytes) -> list[TopicPartition]:
        """Return the partitions that changed."""
        return _decode_partitions(path, data)


class LogDirEventNode:
    """Sequential: a broker reports to the controller that one of its log directories has failed."""

    PARENT = "/log_dir_event_notification"
    PREFIX = f"{PARENT}/log_dir_event_"

    @staticmethod
    def encode(broker_id: int) -> bytes:
        """Return the content, version 1; event 1 is the failure of a directory."""
        return encode_json({"version": 1, "broker": broker_id, "event": 1})

    @staticmethod
    def decode(path: str, data: bytes) -> int:
        """Return the broker's id."""
        return int(decode_json(path, data)["broker"])


class ConfigNode:
    """Dynamic configuration of an entity: a topic, broker, user, client id or address."""

    ROOT = "/config"
    TOPICS = "topics"
    BROKERS = "brokers"
    CLIENTS = "clients"
    USERS = "users"
    IPS = "ips"
    CLIENT_METRICS = "client-metrics"
    GROUPS = "groups"
    TYPES = (TOPICS, BROKERS, CLIENTS, USERS, IPS, CLIENT_METRICS, GROUPS)
    DEFAULT = "<default>"

    @staticmethod
    def type_path(entity_type: str) -> str:
        """Return the parent of all entities of a type."""
        return f"{ConfigNode.ROOT}/{entity_type}"

    @staticmethod
    def path(entity_type: str, entity: str) -> str:
        """Return the path of an entity; `entity` as in a change notification, such as
        `alice/clients/app`.
        """
        return f"{ConfigNode.type_path(entity_type)}/{entity}"

    @staticmethod
    def parent_path(entity_type: str, entity: str) -> str:
        """Return the path of the parent of an entity's node."""
        return ConfigNode.path(entity_type, entity).rpartition("/")[0]

    @staticmethod
    def sanitize(name: str | None) -> str:
        """Return a user, client id or address as it is written in a path; None is the default
        entity.
        """
        if name is None:
            return ConfigNode.DEFAULT
        # Kafka leaves fewer characters unescaped.
        sanitized = quote(name, safe="").replace("~", "%7E")
        # No part of a path may be one of these; Kafka cannot store such names in ZooKeeper.
        return sanitized.replace(".", "%2E") if name in (".", "..") else sanitized

    @staticmethod
    def desanitize(name: str) -> str | None:
        """Return the name from the result of `sanitize`."""
        return None if name == ConfigNode.DEFAULT else unquote(name)

    @staticmethod
    def encode(config: Mapping[str, str]) -> bytes:
        """Return the content, version 1."""
        ordered = {key: config[key] for key in properties_order(config)}
        return encode_json({"version": 1, "config": ordered})

    @staticmethod
    def decode(path: str, data: bytes) -> dict[str, str]:
        """Return the settings; an empty node, such as the parent of a user's clients, has no
        settings.
        """
        if not data:
            return {}
        config = decode_json(path, data).get("config") or {}
        return {str(key): str(value) for key, value in config.items()}


class ConfigChangeNode:
    """Sequential: notifies every broker that an entity's configuration has changed."""

    PARENT = "/config/changes"
    PREFIX = f"{PARENT}/config_change_"

    @staticmethod
    def encode(entity_path: str) -> bytes:
        """Return the content, version 2; `entity_path` is a path such as `topics/clicks`."""
        return encode_json({"version": 2, "entity_path": entity_path})

    @staticmethod
    def decode(path: str, data: bytes) -> tuple[str, str]:
        """Return the entity's type and its path below the type.

        Version 1 has them in two fields, `entity_type` and `entity_name`.
        """
        value = decode_json(path, data)
        if "entity_path" in value:
            entity_type, _, entity = str(value["entity_path"]).partition("/")
            return entity_type, entity
        return str(value["entity_type"]), str(value["entity_name"])


class ProducerIdBlock(NamedTuple):
    """Producer ids from `first` to `last` belong to one broker."""

    broker_id: int
    first: int
    last: int


class ProducerIdBlockNode:
    """The last block of producer ids that was assigned to a broker."""

    PATH = "/latest_producer_id_block"

    @staticmethod
    def encode(block: ProducerIdBlock) -> bytes:
        """Return the content, version 1; the bounds are strings."""
        return encode_json(
            {
                "version": 1,
                "broker": block.broker_id,
                "block_start": str(block.first),
                "block_end": str(block.last),
            }
        )

    @staticmethod
    def decode(data: bytes) -> ProducerIdBlock | None:
        """Return the block; None if no block has been assigned."""
        if not data:
            return None
        value = decode_json(ProducerIdBlockNode.PATH, data)
        return ProducerIdBlock(value["broker"], int(value["block_start"]), int(value["block_end"]))


class DelegationTokensNode:
    """The parents of delegation tokens, and of all that is about them (`token_znodes`)."""

    ROOT = "/delegation_token"
    PATH = f"{ROOT}/tokens"


class FeatureNode:
    """Finalized feature levels (KIP-584)."""

    PATH = "/feature"
    ENABLED = 1
    _LEVEL = "max_version_level"

    @staticmethod
    def encode(levels: Mapping[str, int], status: int = ENABLED) -> bytes:
        """Return the content, version 2: a level is the maximum of a range that begins at 1."""
        features = {name: {FeatureNode._LEVEL: level} for name, level in levels.items()}
        return encode_json({"features": features, "version": 2, "status": status})

    @staticmethod
    def decode(data: bytes) -> tuple[dict[str, int], int]:
        """Return levels and status; version 1 also contains the minimum of each range."""
        value = decode_json(FeatureNode.PATH, data)
        features = value.get("features") or {}
        levels = {name: int(level[FeatureNode._LEVEL]) for name, level in features.items()}
        return levels, int(value["status"])


# The nodes that every broker creates at its start if they are missing, parents first.
PERSISTENT_PATHS = (
    BrokerIdsNode.PATH,
    TopicsNode.PATH,
    ConfigChangeNode.PARENT,
    DeleteTopicsNode.PATH,
    BrokerSequenceIdNode.PATH,
    IsrChangeNode.PARENT,
    ProducerIdBlockNode.PATH,
    LogDirEventNode.PARENT,
    *(ConfigNode.type_path(entity_type) for entity_type in ConfigNode.TYPES),
)
