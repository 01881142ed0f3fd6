"""The table of costs: how much work one request of each API may cause, and how it is divided.

Every request has a bound for its bytes, for the objects that its decoder creates, for the bytes of
its response, and for the processor time of the event loop. A request above `large_bytes` is handled
in the lane of large work, in the parts that `split` describes. So no request, however large, stops
the loop for more than a tenth of a second, and clients that name ten thousand topics at once are
served. A test sends the worst request of each row to a broker.

Kafka has no such table: its request handler threads delay one another, not the network.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.wire.api_keys import ApiKey
from ottla.wire.primitives import OBJECT_BUDGET

_KIB, _MIB = 1024, 1024 * 1024
UNLIMITED = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Split:
    """How the requests of an API are divided.

    `request` and `response` name the lists from the root to the leaves: topics, and partitions.
    `at_once` is the number of leaves in a part. `names` has for each outer level the fields that
    identify an element in request and response. `also` are further lists of the response, with the
    field that identifies their elements.

    Leaves with the same `key`, a list of fields, or an empty one if a leaf is its own key, are in
    one part, or in parts of their own: the handler sees that they are repeated. With `once`, two of
    them are kept for that, so a response has at most two rows for them. Without a key the order is
    kept.
    """

    request: tuple[str, ...]
    response: tuple[str, ...]
    at_once: int
    names: tuple[tuple[str, ...], ...] = ()
    key: tuple[str, ...] | None = None
    once: bool = False
    also: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        assert len(self.request) == len(self.response) == len(self.names) + 1
        assert self.key is not None or not self.once
        # Of four equal elements, each part has two.
        assert self.at_once > 2 or self.key is None

    def applies_to(self, request: Any) -> bool:
        """Return True if the request has leaves in these lists."""
        return bool(getattr(request, self.request[0], None))


class Cost(NamedTuple):
    """The bounds of one API."""

    # A larger request is handled in the lane. It has at least as many bytes as elements.
    large_bytes: int = 4 * _KIB
    # The objects that the decoder may create (`ottla.wire.decoding.objects_per_item`): decoding is
    # done at a stretch.
    objects_max: int = 90_000
    # Ways to divide a large request; the first one with elements is taken. Others are handled at a
    # stretch, after a pause.
    splits: tuple[Split, ...] = ()
    # A request with no more objects is not large, whatever its bytes.
    small_objects: int = 0
    # Producers, consumers and groups wait for it; other requests come from tools.
    is_urgent: bool = False
    # The work is of no use when the client has disconnected.
    is_query: bool = False
    # Beyond these, the connection is closed. Records have socket.request.max.bytes.
    request_bytes_max: int = 16 * _MIB
    response_bytes_max: int = 100 * _MIB
    seconds_max: float = 30.0


_TOPICS = ("topics", "partitions")
# Requests of one thing, or of brokers that have proven to be some.
_SMALL = Cost(objects_max=1000)
_SMALL_URGENT = _SMALL._replace(is_urgent=True)
_AMONG_BROKERS = Cost(large_bytes=UNLIMITED, objects_max=OBJECT_BUDGET)


def _flat(
    request: str,
    response: str,
    at_once: int,
    *,
    key: tuple[str, ...] | None = None,
    once: bool = False,
    also: tuple[tuple[str, str], ...] = (),
) -> Split:
    """Return the division of a single list."""
    return Split(
        request=(request,), response=(response,), at_once=at_once, key=key, once=once, also=also
    )


def _by_topic(
    at_once: int,
    *,
    request: tuple[str, str] = _TOPICS,
    response: tuple[str, str] = _TOPICS,
    name: str = "name",
    key: tuple[str, ...] | None = None,
    once: bool = False,
) -> Split:
    """Return the division of a list of topics with partitions."""
    return Split(
        request=request,
        response=response,
        names=((name,),),
        at_once=at_once,
        key=key,
        once=once,
    )


_CONFIGURED = ("resource_type", "resource_name")

COSTS: dict[ApiKey, Cost] = {
    ApiKey.PRODUCE: Cost(
        is_urgent=True,
        large_bytes=16 * _KIB,
        objects_max=40_000,
        small_objects=300,
        request_bytes_max=UNLIMITED,
        splits=(
            Split(
                request=("topic_data", "partition_data"),
                response=("responses", "partition_responses"),
                names=(("name", "topic_id"),),
                at_once=100,
                also=(("node_endpoints", "node_id"),),
            ),
        ),
    ),
    # Its handler reads many partitions in slices.
    ApiKey.FETCH: Cost(is_urgent=True, large_bytes=64 * _KIB, objects_max=40_000, is_query=True),
    ApiKey.LIST_OFFSETS: Cost(
        is_urgent=True,
        is_query=True,
        splits=(_by_topic(100, key=("partition_index",), once=True),),
    ),
    ApiKey.METADATA: Cost(
        is_urgent=True,
        large_bytes=32 * _KIB,
        is_query=True,
        splits=(
            _flat(
                "topics",
                "topics",
                500,
                key=("name", "topic_id"),
                once=True,
                also=(("brokers", "node_id"),),
            ),
        ),
    ),
    ApiKey.LEADER_AND_ISR: _AMONG_BROKERS,
    ApiKey.STOP_REPLICA: _AMONG_BROKERS,
    ApiKey.UPDATE_METADATA: _AMONG_BROKERS,
    ApiKey.CONTROLLED_SHUTDOWN: _AMONG_BROKERS,
    # One batch of __consumer_offsets holds the offsets of all topics: there are no parts.
    ApiKey.OFFSET_COMMIT: Cost(is_urgent=True, objects_max=32_000),
    ApiKey.OFFSET_FETCH: Cost(
        is_urgent=True,
        large_bytes=512,
        is_query=True,
        splits=(
            Split(
                request=("groups", "topics", "partition_indexes"),
                response=("groups", "topics", "partitions"),
                names=(("group_id",), ("name", "topic_id")),
                at_once=300,
                key=(),
                once=True,
            ),
            _by_topic(300, request=("topics", "partition_indexes"), key=(), once=True),
        ),
    ),
    ApiKey.FIND_COORDINATOR: Cost(
        is_urgent=True, is_query=True, splits=(_flat("coordinator_keys", "coordinators", 500),)
    ),
    ApiKey.JOIN_GROUP: Cost(is_urgent=True, objects_max=20_000),
    ApiKey.HEARTBEAT: _SMALL_URGENT,
    ApiKey.LEAVE_GROUP: Cost(is_urgent=True, objects_max=40_000),
    ApiKey.SYNC_GROUP: Cost(is_urgent=True, objects_max=40_000),
    # A group may have a thousand members, and be named repeatedly.
    ApiKey.DESCRIBE_GROUPS: Cost(
        large_bytes=256,
        is_query=True,
        splits=(_flat("groups", "groups", 20, key=(), once=True),),
    ),
    ApiKey.LIST_GROUPS: Cost(objects_max=2000, is_query=True),
    ApiKey.SASL_HANDSHAKE: _SMALL,
    ApiKey.API_VERSIONS: _SMALL,
    ApiKey.CREATE_TOPICS: Cost(splits=(_flat("topics", "topics", 100, key=("name",)),)),
    ApiKey.DELETE_TOPICS: Cost(
        splits=(
            _flat("topics", "responses", 200, key=("name", "topic_id"), once=True),
            _flat("topic_names", "responses", 200, key=(), once=True),
        )
    ),
    ApiKey.DELETE_RECORDS: Cost(splits=(_by_topic(300, key=("partition_index",), once=True),)),
    ApiKey.INIT_PRODUCER_ID: _SMALL_URGENT,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Cost(
        is_urgent=True, is_query=True, splits=(_by_topic(500, name="topic"),)
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: Cost(
        is_urgent=True,
        objects_max=40_000,
        splits=(_flat("transactions", "results_by_transaction", 20),),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: _SMALL_URGENT,
    ApiKey.END_TXN: _SMALL_URGENT,
    ApiKey.WRITE_TXN_MARKERS: Cost(
        is_urgent=True,
        splits=(
            Split(
                request=("markers", "topics", "partition_indexes"),
                response=("markers", "topics", "partitions"),
                names=(("producer_id",), ("name",)),
                at_once=20,
            ),
        ),
    ),
    ApiKey.TXN_OFFSET_COMMIT: Cost(is_urgent=True, objects_max=32_000),
    ApiKey.DESCRIBE_ACLS: _SMALL,
    # Each list is a node of the tree; brokers compare each filter with all of them, in slices.
    ApiKey.CREATE_ACLS: Cost(objects_max=5000, splits=(_flat("creations", "results", 100),)),
    ApiKey.DELETE_ACLS: Cost(objects_max=5000),
    ApiKey.DESCRIBE_CONFIGS: Cost(
        large_bytes=256,
        is_query=True,
        response_bytes_max=256 * _MIB,
        splits=(
            _flat(
                "resources",
                "results",
                8,
                key=(*_CONFIGURED, "configuration_keys"),
                once=True,
            ),
        ),
    ),
    ApiKey.ALTER_CONFIGS: Cost(
        objects_max=60_000, splits=(_flat("resources", "responses", 50, key=_CONFIGURED),)
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Cost(objects_max=60_000),
    ApiKey.DESCRIBE_LOG_DIRS: Cost(objects_max=60_000, is_query=True),
    ApiKey.SASL_AUTHENTICATE: _SMALL,
    ApiKey.CREATE_PARTITIONS: Cost(splits=(_flat("topics", "results", 100, key=("name",)),)),
    ApiKey.CREATE_DELEGATION_TOKEN: _SMALL,
    ApiKey.RENEW_DELEGATION_TOKEN: _SMALL,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _SMALL,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _SMALL,
    ApiKey.DELETE_GROUPS: Cost(splits=(_flat("groups_names", "results", 100, key=(), once=True),)),
    ApiKey.ELECT_LEADERS: Cost(
        splits=(
            _by_topic(
                500,
                request=("topic_partitions", "partitions"),
                response=("replica_election_results", "partition_result"),
                name="topic",
            ),
        )
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Cost(
        objects_max=60_000, splits=(_flat("resources", "responses", 50, key=_CONFIGURED),)
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Cost(
        splits=(_by_topic(200, response=("responses", "partitions")),)
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Cost(objects_max=60_000, is_query=True),
    ApiKey.OFFSET_DELETE: Cost(objects_max=40_000),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _SMALL,
    ApiKey.ALTER_CLIENT_QUOTAS: Cost(
        objects_max=60_000,
        splits=(_flat("entries", "entries", 50, key=("entity",), once=True),),
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Cost(
        is_query=True,
        splits=(_flat("users", "results", 500, key=("name",), once=True),),
    ),
    # Its handler changes one user after the other, and computes keys.
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Cost(objects_max=10_000),
    ApiKey.ALTER_PARTITION: _AMONG_BROKERS,
    ApiKey.UPDATE_FEATURES: _SMALL,
    ApiKey.DESCRIBE_CLUSTER: _SMALL,
    ApiKey.DESCRIBE_PRODUCERS: Cost(
        large_bytes=256,
        is_query=True,
        splits=(_by_topic(50, request=("topics", "partition_indexes"), key=(), once=True),),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: Cost(
        large_bytes=256,
        is_query=True,
        splits=(_flat("transactional_ids", "transaction_states", 50, key=(), once=True),),
    ),
    ApiKey.LIST_TRANSACTIONS: Cost(objects_max=10_000, is_query=True),
    ApiKey.ALLOCATE_PRODUCER_IDS: _AMONG_BROKERS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Cost(is_urgent=True, objects_max=40_000),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Cost(
        large_bytes=256,
        is_query=True,
        splits=(_flat("group_ids", "groups", 20, key=(), once=True),),
    ),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _SMALL,
    ApiKey.PUSH_TELEMETRY: _SMALL,
    ApiKey.LIST_CONFIG_RESOURCES: _SMALL,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Cost(is_query=True),
}

# An API without a row, in tests of the dispatcher.
UNKNOWN = Cost(large_bytes=UNLIMITED, objects_max=OBJECT_BUDGET)
