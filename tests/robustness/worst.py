"""The worst legal requests of each API: as many elements as its row in the table of costs allows.

They are built from the declarations of the messages. Each list of a request is filled in turn, with
one element in each list around it, and once more with as many elements of the outermost list as
possible. Each of these has a smaller twin: the largest request that is not handled in the lane.
Names are the names of existing topics, always the same one, missing ones, or forbidden ones.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.base.uuids import ZERO_UUID
from ottla.server.transport.apis import ApiRow
from ottla.server.transport.costs import COSTS
from ottla.wire import schema
from ottla.wire.api_keys import APIS, ApiKey
from ottla.wire.decoding import objects_per_item
from ottla.wire.fields import OCTETS, RECORDS, STRING, UUID, Array, Fixed, Message, Nested, Type
from ottla.wire.records.records import Record, encode_batch

TOPIC, FORBIDDEN, MISSING = "topic-{}", "forbidden-{}", "missing-{}"
NAMES = ("same", "existing", "missing", "forbidden")
# Objects that are left for the rest of a request.
_SPARE = 500
Path = tuple[str, ...]

# Values of fields by name, if an API has no values of its own. Other numbers are 1.
_VALUES: dict[str, Any] = {
    "acks": 1,
    "acl_operation": 3,
    "allow_auto_topic_creation": False,
    "base_sequence": 0,
    "client_instance_id": bytes(range(16)),
    "committed_offset": 5,
    "config_operation": 0,
    "count": 5,
    "current_leader_epoch": -1,
    "election_type": 0,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "group_instance_id": None,
    "host": "*",
    "host_filter": None,
    "include_documentation": True,
    "include_synonyms": True,
    "isolation_level": 0,
    "iterations": 4096,
    "key_type": 0,
    "last_fetched_epoch": -1,
    "max_bytes": 1_000_000,
    "max_wait_ms": 0,
    "member_epoch": 0,
    "member_id": "",
    "min_bytes": 0,
    "num_partitions": 1,
    "operation": 3,
    "partition_max_bytes": 1,
    "pattern_type_filter": 1,
    "permission_type": 3,
    "principal": "User:someone",
    "principal_filter": None,
    "principal_type": "User",
    "protocol_type": "consumer",
    "replica_id": -1,
    "replication_factor": 1,
    "resource_name_filter": None,
    "resource_pattern_type": 3,
    "resource_type": 2,
    "resource_type_filter": 1,
    "session_epoch": -1,
    "session_id": 0,
    "session_timeout_ms": 10_000,
    "timeout_ms": 30_000,
    "timestamp": -1,
    "transactional_id": None,
    "validate_only": True,
}
_OF_API: dict[ApiKey, dict[str, Any]] = {
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        "transactional_id": "t",
        "v3_and_below_transactional_id": "t",
        "verify_only": False,
    },
    ApiKey.ALTER_CLIENT_QUOTAS: {"entity_type": "user", "key": "producer_byte_rate"},
    ApiKey.ALTER_CONFIGS: {"value": "100000", "name": "retention.ms"},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {"value": "100000", "name": "retention.ms"},
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {
        "member_id": "member",
        "server_assignor": None,
        "subscribed_topic_regex": None,
        "rebalance_timeout_ms": 300_000,
    },
    ApiKey.CREATE_TOPICS: {"value": "100000"},
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"response_partition_limit": 2000},
    ApiKey.JOIN_GROUP: {"rebalance_timeout_ms": 60_000},
    ApiKey.TXN_OFFSET_COMMIT: {"transactional_id": "t"},
}
# Bytes of a header, and a part of the bytes that longer numbers in names need.
_HEADER_BYTES, _SHARE = 50, 0.9
_BROKER, _LOGGER = 4, 8
# The broker searches for similar options.
_MISTYPED: tuple[dict[str, Any], ...] = (
    {"resource_type": 2, "name": "retention.mss"},
    {"resource_type": _BROKER, "name": "log.retention.mss"},
    {"resource_type": _BROKER, "name": "x" * 100},
)
# Values of fields of an API that are tried one after the other.
_TRIED: dict[ApiKey, tuple[dict[str, Any], ...]] = {
    ApiKey.DESCRIBE_CONFIGS: tuple({"resource_type": kind} for kind in (2, 4, 8, 16, 32)),
    ApiKey.ALTER_CONFIGS: (*({"resource_type": kind} for kind in (2, 4, 16, 32)), *_MISTYPED),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        *({"resource_type": kind} for kind in (2, 4, 8, 16, 32)),
        *_MISTYPED,
    ),
    ApiKey.LIST_OFFSETS: tuple({"timestamp": timestamp} for timestamp in (-1, -2, -3, 1)),
    ApiKey.FIND_COORDINATOR: ({"key_type": 0}, {"key_type": 1}),
}


class World(NamedTuple):
    """The state of the broker that the requests refer to."""

    node_id: int
    topics_count: int
    partitions: int
    topic_ids: tuple[bytes, ...]


class Worst(NamedTuple):
    """One request, and what it is about."""

    name: str
    message: Message
    version: int
    # The largest one that is not handled in the lane.
    is_small: bool = False


def largest_requests(world: World, row: ApiRow) -> Iterator[Worst]:
    """Yield the largest requests of an API for existing topics."""
    tried, *_ = _TRIED.get(ApiKey(int(row.handler.API)), ({},))
    return (one for one in _of_api(world, row, "existing", tried) if not one.is_small)


def worst_requests(world: World, row: ApiRow, names: tuple[str, ...] = NAMES) -> Iterator[Worst]:
    """Yield the worst requests of an API, with these sorts of names."""
    for tried in _TRIED.get(ApiKey(int(row.handler.API)), ({},)):
        for sort in names:
            yield from _of_api(world, row, sort, tried)


def _of_api(world: World, row: ApiRow, names: str, tried: dict[str, Any]) -> Iterator[Worst]:
    key = ApiKey(int(row.handler.API))
    cls = APIS[key].request
    seen: set[tuple[Path, bool]] = set()
    for version in (row.handler.MAX_VERSION, row.handler.MIN_VERSION):
        for path in _lists(cls, version, ()):
            # Old versions name topics where newer ones have ids.
            sort = path, _has_ids(cls, path[0], version)
            if sort in seen:
                continue
            seen.add(sort)
            for counts in _counts(cls, path, COSTS[key].objects_max - _SPARE):
                values = _VALUES | _OF_API.get(key, {}) | tried
                builder = _Builder(world, names, version, counts, values)
                what = ", ".join(f"{'.'.join(one)} x{count}" for one, count in counts.items())
                extra = f" {tried}" if tried else ""
                name = f"{key.name} v{version} {names}{extra}: {what}"
                message = builder.build(cls, ())
                yield Worst(name, message, version)
                size_bytes = len(schema.encode(message, version))
                share = _SHARE * COSTS[key].large_bytes / (size_bytes + _HEADER_BYTES)
                if share < 1:
                    few = {path: max(1, int(count * share)) for path, count in counts.items()}
                    builder = _Builder(world, names, version, few, values)
                    message = builder.build(cls, ())
                    yield Worst(f"{name}, small", message, version, is_small=True)


def _lists(cls: type[Any], version: int, above: Path) -> Iterator[Path]:
    """Yield the lists of a message, as the names of the fields that lead to them."""
    for field in cls.FIELDS:
        if not field.is_in(version) or field.tag is not None:
            continue
        kind = field.type
        if isinstance(kind, Array):
            yield (*above, field.name)
            if isinstance(kind.item, Nested):
                yield from _lists(kind.item.struct, version, (*above, field.name))
        elif isinstance(kind, Nested):
            yield from _lists(kind.struct, version, (*above, field.name))


def _has_ids(cls: type[Any], name: str, version: int) -> bool:
    field = next(field for field in cls.FIELDS if field.name == name)
    kind = field.type.item if isinstance(field.type, Array) else field.type
    if not isinstance(kind, Nested):
        return kind is UUID
    return any(one.type is UUID and one.is_in(version) for one in kind.struct.FIELDS)


def _counts(cls: type[Any], path: Path, objects: int) -> Iterator[dict[Path, int]]:
    """Yield how many elements each list has: all in the innermost one, or in the outermost one."""
    weights = [_weight(cls, path[: at + 1]) for at in range(len(path))]
    above = {path[: at + 1]: 1 for at in range(len(path) - 1)}
    yield {**above, path: max(1, (objects - sum(weights[:-1])) // weights[-1])}
    if above:
        yield {**above, path: 1, path[:1]: objects // sum(weights)}


def _weight(cls: type[Any], path: Path) -> int:
    kind: Type = Nested(cls)
    for name in path:
        assert isinstance(kind, Nested)
        found = next(field for field in kind.struct.FIELDS if field.name == name)
        kind = found.type.item if isinstance(found.type, Array) else found.type
    return objects_per_item(kind)


class _Builder:
    """Builds one request; each text and number is the next one of its kind."""

    def __init__(
        self,
        world: World,
        names: str,
        version: int,
        counts: dict[Path, int],
        values: dict[str, Any],
    ) -> None:
        self._world = world
        self._names = names
        self._version = version
        self._counts = counts
        self._values = values
        self._number = 0

    def build(self, cls: type[Any], path: Path) -> Any:
        values = {}
        for field in cls.FIELDS:
            if not field.is_in(self._version) or field.tag is not None:
                continue
            if isinstance(field.type, Array):
                here = (*path, field.name)
                values[field.name] = [
                    self._item(field.type.item, field.name, here)
                    for _ in range(self._counts.get(here, 0))
                ]
            elif isinstance(field.type, Nested):
                # A cursor and the like: none.
                values[field.name] = field.default if field.default is None else field.type.struct()
            else:
                values[field.name] = self._value(field.type, field.name)
        return cls(**values)

    def _item(self, kind: Type, name: str, path: Path) -> Any:
        if isinstance(kind, Nested):
            return self.build(kind.struct, path)
        return self._value(kind, name)

    def _value(self, kind: Type, name: str) -> Any:
        if name in self._values and not self._is_name(name):
            return self._values[name]
        if kind is STRING:
            return self._text(name)
        if kind is OCTETS:
            return b"x"
        if kind is RECORDS:
            return _BATCH if self._names in ("same", "existing") else b""
        if kind is UUID:
            return self._topic_id()
        assert isinstance(kind, Fixed)
        if kind.code == "?":
            return False
        if kind.code == "d":
            return 1.0
        if "partition" in name or name in ("index", "partitions"):
            self._number += 1
            exists = self._names in ("same", "existing")
            return self._number % (self._world.partitions if exists else 100_000)
        return 1

    def _is_name(self, name: str) -> bool:
        return name == "principal_name"

    def _text(self, name: str) -> str:
        self._number += 1
        if self._values.get("resource_type") in (_BROKER, _LOGGER) and name == "resource_name":
            return str(self._world.node_id)
        match self._names:
            case "same":
                return TOPIC.format(0)
            case "existing":
                return TOPIC.format(self._number % self._world.topics_count)
            case "missing":
                return MISSING.format(self._number)
        return FORBIDDEN.format(self._number)

    def _topic_id(self) -> bytes:
        self._number += 1
        ids = self._world.topic_ids
        if self._names == "missing" or not ids:
            return self._number.to_bytes(16, "big")
        # Of topics that are named, the id is none.
        return ids[0 if self._names == "same" else self._number % len(ids)] or ZERO_UUID


_BATCH = bytes(encode_batch([Record(None, b"v", (), 1_790_000_000_000)]))
