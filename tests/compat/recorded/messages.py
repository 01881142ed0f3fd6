"""Messages to and from the notation: builds a request for a version, and shows a response.

Fields that a version does not have are dropped, so that one line can be sent in many versions. A
response shows the fields that are not default, with symbols for values that differ in every run:
ids, ports, times. Error texts are shown only as present; throttle times are omitted; lists that
represent a map are sorted by key.
"""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.wire.api_keys import APIS
from ottla.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from ottla.wire.fields import (
    INT64,
    NO_UUID,
    OCTETS,
    RECORDS,
    STRING,
    UUID,
    Array,
    Field,
    Message,
    Nested,
    Struct,
)
from ottla.wire.messages.create_topics import CreatableTopicConfigs
from tests.compat.recorded import batches
from tests.compat.recorded.notation import Word
from tests.compat.recorded.symbols import Symbols

TEXT = Word("text")
# Texts are for people: only their presence is shown.
TEXTS = frozenset({"error_message", "batch_index_error_message", "documentation"})
_LEFT_OUT = frozenset({"throttle_time_ms"})
_MOMENTS = frozenset(
    {"log_append_time_ms", "timestamp", "last_timestamp", "transaction_start_time_ms"}
)
# Free disk space, which always differs.
_ROOM = frozenset({"total_bytes", "usable_bytes"})
_SYMBOLS = {
    "topic_id": "topic_id",
    "producer_id": "producer_id",
    "session_id": "session",
    "cluster_id": "cluster_id",
    "finalized_features_epoch": "features_epoch",
    "log_dir": "log_dir",
    "client_instance_id": "client",
    "subscription_id": "subscription",
    "port": "port",
}
# The fields that identify the elements of a list, in this order.
_KEYS = (
    "api_key",
    "key",
    "group_id",
    "transactional_id",
    "resource_type",
    "resource_name",
    "name",
    "topic",
    "topic_id",
    "partition_index",
    "partition_id",
    "partition",
    "index",
    "feature",
    "entity_type",
    "entity_name",
    "node_id",
    "broker_id",
    "member_id",
    "group_instance_id",
    "batch_index",
)
# Lists whose order is significant.
_ORDERED = frozenset({"synonyms"})
# Lists of plain values that represent a set.
_SETS = frozenset({"partitions", "requested_metrics", "subscribed_topic_names"})
_DEFAULT_CONFIG = 5
# Only a broker with ZooKeeper lists these; most recordings are of brokers without it: LeaderAndIsr,
# StopReplica, UpdateMetadata, ControlledShutdown, AlterPartition, AllocateProducerIds.
_AMONG_BROKERS = frozenset({4, 5, 6, 7, 56, 67})
# All brokers, in the words of several APIs.
BROKERS = Word("$brokers")
_ALL_BROKERS = (
    [{"node_id": 1, "host": "127.0.0.1", "port": Word("$port")}],
    [{"broker_id": 1, "host": "127.0.0.1", "port": Word("$port")}],
)


def build(cls: type[Message], version: int, written: dict[str, Any], symbols: Symbols) -> Message:
    """Return the message as written. Raises AssertionError for a field that it does not have."""
    built = _build(cls, version, written, symbols)
    assert isinstance(built, Message)
    return built


def _build(cls: type[Struct], version: int, written: dict[str, Any], symbols: Symbols) -> Struct:
    fields = {field.name: field for field in cls.FIELDS}
    unknown = written.keys() - fields.keys()
    assert not unknown, f"{cls.__name__} has no {', '.join(sorted(unknown))}"
    return cls(
        **{
            name: _sent(fields[name].type, version, value, symbols)
            for name, value in written.items()
            if fields[name].is_in(version)
        }
    )


def _sent(kind: Any, version: int, value: Any, symbols: Symbols) -> Any:
    if value is None:
        return None
    if isinstance(value, Word) and value.is_symbol:
        return symbols.value(value)
    if isinstance(kind, Array):
        return [_sent(kind.item, version, item, symbols) for item in value]
    if isinstance(kind, Nested):
        return _build(kind.struct, version, value, symbols)
    if kind == RECORDS:
        return value if isinstance(value, bytes) else batches.encode(value, symbols, version)
    if kind == STRING:
        assert isinstance(value, str), f"{value!r} is no string"
        return symbols.filled(value, version)
    if kind == OCTETS:
        return value if isinstance(value, bytes) else _sent_bytes(value, symbols, version)
    return value


def _sent_bytes(value: Any, symbols: Symbols, version: int) -> bytes:
    match value:
        case str():
            return symbols.filled(value, version).encode()
        case {"subscription": list(topics)}:
            subscription = ConsumerProtocolSubscription(topics=topics)
            return symbols.remember(encode_subscription(subscription), value)
        case {"assignment": dict(topics)}:
            partitions = [TopicPartition(topic=t, partitions=p) for t, p in topics.items()]
            assignment = ConsumerProtocolAssignment(assigned_partitions=partitions)
            return symbols.remember(encode_assignment(assignment), value)
    raise AssertionError(f"{value!r} are no bytes")


def show(message: Struct, version: int, symbols: Symbols) -> dict[str, Any]:
    """Return the fields of a response that are not default."""
    output = {}
    is_good = getattr(message, "error_code", 0) == 0
    for field in message.FIELDS:
        if field.is_in(version) and field.name not in _LEFT_OUT:
            value = getattr(message, field.name)
            if _is_said(field, value, is_good=is_good):
                result = _shown(field, version, value, symbols)
                # Values that exist but are not worth showing.
                hidden = result in (None, []) and value not in (None, [])
                if field.name in TEXTS:
                    hidden = result is None or (field.name == "error_message" and is_good)
                    # The message of the code 0, which few responses have.
                    if value == ErrorCode.NONE.name:
                        hidden, result = False, value
                if not hidden:
                    output[field.name] = result
    return output


def _is_said(field: Field, value: Any, *, is_good: bool) -> bool:
    """Return True if a value differs from its default; producer ids begin with 0."""
    if field.name == "producer_id" and is_good:
        return bool(value != -1)
    return bool(
        value != ([] if isinstance(field.type, Array) and field.is_fresh else field.default)
    )


def _shown(field: Field, version: int, value: Any, symbols: Symbols) -> Any:
    name = field.name
    if name in TEXTS:
        return TEXT if value else None
    if value is None:
        return None
    if name.endswith("error_code"):
        return Word(ErrorCode(value).name)
    if name in _SYMBOLS:
        return symbols.name(_SYMBOLS[name], value)
    if name == "member_id":
        return symbols.member(value)
    if name in _ROOM:
        return Word("$room")
    if name in _MOMENTS and field.type == INT64:
        return symbols.moment(value)
    if field.type == RECORDS:
        return batches.show(value, symbols)
    if isinstance(field.type, Array):
        return _shown_list(field, version, value, symbols)
    return _plain(field.type, version, value, symbols)


def _shown_list(field: Field, version: int, items: list[Any], symbols: Symbols) -> Any:
    assert isinstance(field.type, Array)
    item_type = field.type.item
    if item_type == Nested(CreatableTopicConfigs):
        # DescribeConfigs shows the defaults of a new topic.
        items = [row for row in items if row.config_source != _DEFAULT_CONFIG]
    if field.name in _SETS and not isinstance(item_type, Nested):
        items = sorted(items)
    if isinstance(item_type, Nested) and field.name not in _ORDERED:
        items = sorted(items, key=lambda item: _key(item, symbols))
    if field.name == "api_keys":
        return [
            f"{row.api_key} {row.min_version}-{row.max_version}"
            for row in items
            if row.api_key in APIS and row.api_key not in _AMONG_BROKERS
        ]
    results = [_plain(item_type, version, item, symbols) for item in items]
    return BROKERS if field.name == "brokers" and results in _ALL_BROKERS else results


def _plain(kind: Any, version: int, value: Any, symbols: Symbols) -> Any:
    if isinstance(kind, Nested):
        return show(value, version, symbols)
    if kind == STRING:
        return symbols.text(value)
    if kind == OCTETS:
        return symbols.bytes(value)
    if kind == UUID:
        return symbols.name("topic_id", value) if value != NO_UUID else None
    return value


def _key(item: Struct, symbols: Symbols) -> tuple[tuple[str, Any], ...]:
    parts: list[tuple[str, Any]] = []
    for name in _KEYS:
        value = getattr(item, name, None)
        if isinstance(value, bytes):
            # Two ids that were not seen before stay in their order.
            value = str(symbols.known("topic_id", value) or "~")
        elif isinstance(value, str) and name == "member_id":
            value = symbols.member(value)
        parts.append((type(value).__name__, value if value is not None else 0))
    entity = [(part.entity_type, part.entity_name or "") for part in getattr(item, "entity", ())]
    return (*parts, ("entity", sorted(entity)))
