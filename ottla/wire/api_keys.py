"""The table of APIs: key, name, versions, request and response class.

The versions are those that the codec reads and writes: Apache Kafka 4.3's, and 3.9's of the four
APIs that exist only with ZooKeeper. `ottla.server.transport.apis` decides which ones a broker
advertises. The key's name in lower case is the API's file in `wire/messages/`, `server/handlers/`
and `tests/handlers/`; in camel case it begins the names of the message classes. So a new API needs
its key here, and no row. A file is imported when its API is first looked up: a broker does not
need those that only Apache Kafka serves, and a client needs few.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from ottla.base.loading import load_module
from ottla.wire.fields import NEVER, Message


class ApiKey(IntEnum):
    """The number of each API in a request header."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_DESCRIBE = 77
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


class Api(NamedTuple):
    """One API; both version bounds are included, `flexible_since` is `NEVER` for some."""

    key: ApiKey
    name: str
    stem: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_since: int

    @property
    def is_ever_flexible(self) -> bool:
        """True if any version has compact lengths and tagged fields."""
        return self.flexible_since != NEVER


def _api(key: ApiKey) -> Api:
    stem = key.name.lower()
    module, name = load_module(f"ottla.wire.messages.{stem}"), stem.title().replace("_", "")
    request: type[Message] = getattr(module, f"{name}Request")
    response: type[Message] = getattr(module, f"{name}Response")
    assert request.API_KEY == response.API_KEY == key, f"{name} has another API key"
    return Api(
        key=key,
        name=name,
        stem=stem,
        request=request,
        response=response,
        min_version=request.MIN_VERSION,
        max_version=request.MAX_VERSION,
        flexible_since=request.FLEXIBLE_SINCE,
    )


class _Apis(Mapping[int, Api]):
    """The APIs by key; each is imported when it is first looked up."""

    def __init__(self) -> None:
        self._imported: dict[int, Api] = {}

    def __getitem__(self, key: int) -> Api:
        api = self._imported.get(key)
        if api is None:
            if key not in self:
                raise KeyError(key)
            api = self._imported[key] = _api(ApiKey(key))
        return api

    def __contains__(self, key: object) -> bool:
        return key in _KEYS

    def __iter__(self) -> Iterator[int]:
        return iter(_KEYS)

    def __len__(self) -> int:
        return len(_KEYS)


_KEYS = tuple(int(key) for key in ApiKey)
APIS: Mapping[int, Api] = _Apis()


def api_of(message: Message | type[Message]) -> Api:
    """Return the API of a request or response, or of their class."""
    return APIS[message.API_KEY]
