"""Foreign-key joins of tables (KIP-213, KIP-1104 for null keys).

The left table subscribes at the partition of its foreign key. The right table responds to a new
subscription with its value, and to all subscriptions of a key when its value changes. The left side
drops a response to an older left value; it compares the hash of the value in the subscription.

Two updates of a left entry may be in flight at once: on Spark if they are in one micro-batch, in
Kafka Streams if they arrive quickly. If the response to the first one is dropped, the response to
the second must retract the result that the first would have retracted. So an inner join responds to
every subscription, and the left side stores which entries have a result. A response without a value
retracts an existing result, and is ignored if no result exists.

Not done: Kafka's bytes on the two internal topics; they are read by this code alone.
"""

import enum
import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.streams.model.records import Change, Record, ValueAndTimestamp
from ottla.streams.operators.views import OUT_OF_ORDER, View
from ottla.streams.processor.api import Processor, ProcessorContext
from ottla.streams.serdes import Serde, Serdes, resolve
from ottla.streams.stores.builders import StoreBuilder

AnyProcessor = Processor[Any, Any, Any, Any]

_HASH_BYTES = 16
_SUBSCRIPTION = struct.Struct(">bi?16s")
_RESPONSE = struct.Struct(">i?16sB")
_LENGTH = struct.Struct(">i")
# The values of the byte before a response's value.
_NO_VALUE, _VALUE, _ONLY_TAKES_BACK = 0, 1, 2
_HAS_RESULT = b"\x01"


class Instruction(enum.IntEnum):
    """The action of the right side for a subscription (Kafka's SubscriptionWrapper.Instruction)."""

    DELETE_KEY_NO_PROPAGATE = 0
    DELETE_KEY_AND_PROPAGATE = 1
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3


class Subscription(NamedTuple):
    """A left entry's request for the right value of its foreign key."""

    instruction: Instruction
    primary_key: bytes
    partition: int
    value_hash: bytes | None


class Response(NamedTuple):
    """The right value for a left entry whose value had this hash when it subscribed."""

    value: bytes | None
    partition: int
    value_hash: bytes | None
    only_takes_back: bool = False
    """True if a tombstone is emitted only when the left entry has a result."""


def _write_subscription(subscription: Subscription) -> bytes:
    has_hash = subscription.value_hash is not None
    head = (
        subscription.instruction,
        subscription.partition,
        has_hash,
        subscription.value_hash or b"",
    )
    return _SUBSCRIPTION.pack(*head) + subscription.primary_key


def _read_subscription(data: bytes) -> Subscription:
    instruction, partition, has_hash, value_hash = _SUBSCRIPTION.unpack_from(data)
    key = data[_SUBSCRIPTION.size :]
    return Subscription(Instruction(instruction), key, partition, value_hash if has_hash else None)


def _write_response(response: Response) -> bytes:
    kind = _NO_VALUE if response.value is None else _VALUE
    if response.only_takes_back:
        kind = _ONLY_TAKES_BACK
    has_hash = response.value_hash is not None
    head = _RESPONSE.pack(response.partition, has_hash, response.value_hash or b"", kind)
    return head + (response.value or b"")


def _read_response(data: bytes) -> Response:
    partition, has_hash, value_hash, kind = _RESPONSE.unpack_from(data)
    value = data[_RESPONSE.size :] if kind == _VALUE else None
    value_hash = value_hash if has_hash else None
    return Response(value, partition, value_hash, kind == _ONLY_TAKES_BACK)


SUBSCRIPTION_SERDE: Serde[Subscription] = Serde(
    _write_subscription, _read_subscription, "subscription"
)
RESPONSE_SERDE: Serde[Response] = Serde(_write_response, _read_response, "response")


def to_asking_partition(_topic: str, _key: Any, response: Response, _count: int) -> int:
    """Send a response to the partition of the subscriber (a StreamPartitioner)."""
    return response.partition


def _hash(data: bytes | None) -> bytes | None:
    return None if data is None else hashlib.blake2b(data, digest_size=_HASH_BYTES).digest()


def _prefix(foreign_key: bytes) -> bytes:
    return _LENGTH.pack(len(foreign_key)) + foreign_key


def _after(prefix: bytes) -> bytes:
    """Return the first key after all keys with a prefix; the length before the prefix prevents
    overflow.
    """
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


@dataclass(frozen=True)
class TableSerdes:
    """The serdes of a table; None means the default.

    The topics, without the application's name, are those under which a schema registry has their
    schemas; as in Kafka, most of them only exist there.
    """

    key: Serde[Any] | None
    value: Serde[Any] | None
    key_topic: str
    value_topic: str = ""
    """Empty for operators that do not use the value."""

    def resolve(self, context: ProcessorContext) -> tuple[Serde[Any], Serde[Any]]:
        """Return the serdes with a task's defaults applied."""
        defaults, prefix = context.default_serdes, context.application_id
        key, value = resolve(self.key, defaults.key), resolve(self.value, defaults.value)
        return (
            key.of(f"{prefix}-{self.key_topic}", is_key=True),
            value.of(f"{prefix}-{self.value_topic}", is_key=False),
        )


def results_store(name: str, key: Serde[Any] | None) -> StoreBuilder:
    """Describe the store of the left entries that have a result; Kafka's topology has no such
    store.
    """
    value = Serdes.bytes()
    return StoreBuilder(name, "key_value", key, value, logging_enabled=False, is_hidden=True)


@dataclass(frozen=True)
class SubscriptionSend:
    """Sends, for each change of the left table, an instruction to the right side.

    `results` is the store of the left entries that have a result; a left join needs none.
    """

    extractor: Callable[[Any, Any], Any]
    results: StoreBuilder | None
    this: TableSerdes
    other: TableSerdes
    versioned_semantics: bool = False

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the store of the left entries that have a result."""
        return () if self.results is None else (self.results,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _SubscriptionSendProcessor(self)


class _SubscriptionSendProcessor(AnyProcessor):
    def __init__(self, operator: SubscriptionSend) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._key, self._value = self._operator.this.resolve(context)
        self._foreign_key, _ = self._operator.other.resolve(context)
        results = self._operator.results
        self._results: Any = None if results is None else context.store(results.name)

    def process(self, record: Record[Any, Any]) -> None:
        change: Change[Any] = record.value
        if record.key is None:
            self.context.skip("due to null key")
            return
        if self._operator.versioned_semantics and not change.is_latest:
            self.context.skip(OUT_OF_ORDER)
            return
        steps = self._left_steps if self._results is None else self._inner_steps
        value_hash = _hash(self._value.to_bytes(change.new_value))
        for foreign_key, instruction in steps(record.key, change):
            # Not the record's partition: in a punctuator it is unset, and a topic may have more
            # partitions than tasks.
            partition = self.context.task_partition
            key = self._key.serialize(record.key)
            subscription = Subscription(instruction, key, partition, value_hash)
            self.context.forward(record.with_key(foreign_key).with_value(subscription))

    def _foreign(self, key: Any, value: Any) -> Any:
        return None if value is None else self._operator.extractor(key, value)

    def _differ(self, first_key: Any, second_key: Any) -> bool:
        return self._foreign_key.to_bytes(first_key) != self._foreign_key.to_bytes(second_key)

    def _left_steps(self, key: Any, change: Change[Any]) -> list[tuple[Any, Instruction]]:
        if change.new_value is None and change.old_value is None:
            return []
        new, old = self._foreign(key, change.new_value), self._foreign(key, change.old_value)
        steps = [(new, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)]
        if old is not None and self._differ(new, old):
            steps.insert(0, (old, Instruction.DELETE_KEY_NO_PROPAGATE))
        return steps

    def _inner_steps(self, key: Any, change: Change[Any]) -> list[tuple[Any, Instruction]]:
        new, old = self._foreign(key, change.new_value), self._foreign(key, change.old_value)
        if new is None and change.new_value is not None:
            self.context.skip("due to null foreign key")
        if old is None and new is None:
            # The response that would retract the result is still in flight, and will be dropped.
            has_result = self._results.get(key) is not None
            return [(None, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE)] if has_result else []
        if old is None:
            return [(new, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)]
        if new is None:
            return [(old, Instruction.DELETE_KEY_AND_PROPAGATE)]
        if self._differ(new, old):
            return [
                (old, Instruction.DELETE_KEY_NO_PROPAGATE),
                (new, Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE),
            ]
        return [(new, Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE)]


@dataclass(frozen=True)
class SubscriptionReceive:
    """Stores the subscriptions at the right side, by foreign and primary key."""

    store: StoreBuilder
    other: TableSerdes

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the store of the subscriptions."""
        return (self.store,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _SubscriptionReceiveProcessor(self)


class _SubscriptionReceiveProcessor(AnyProcessor):
    def __init__(self, operator: SubscriptionReceive) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.store(self._operator.store.name)
        self._foreign_key, _ = self._operator.other.resolve(context)

    def process(self, record: Record[Any, Any]) -> None:
        subscription: Subscription = record.value
        if record.key is None:
            if subscription.instruction is Instruction.PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE:
                self.context.forward(record)
            return
        stored_key = _prefix(self._foreign_key.serialize(record.key)) + subscription.primary_key
        deletes = subscription.instruction in (
            Instruction.DELETE_KEY_NO_PROPAGATE,
            Instruction.DELETE_KEY_AND_PROPAGATE,
        )
        self._store.put(
            stored_key, None if deletes else ValueAndTimestamp(subscription, record.timestamp)
        )
        self.context.forward(record)


@dataclass(frozen=True)
class SubscriptionJoin:
    """Responds to a new subscription with the right table's value."""

    view: View
    this: TableSerdes
    other: TableSerdes

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _SubscriptionJoinProcessor(self)


class _SubscriptionJoinProcessor(AnyProcessor):
    def __init__(self, operator: SubscriptionJoin) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table = self._operator.view.open(context)
        self._key, _ = self._operator.this.resolve(context)
        _, self._value = self._operator.other.resolve(context)

    def process(self, record: Record[Any, Any]) -> None:
        subscription: Subscription = record.value
        entry = None if record.key is None else self._table.get(record.key)
        value = None if entry is None else self._value.to_bytes(entry.value)
        if subscription.instruction is Instruction.DELETE_KEY_NO_PROPAGATE:
            return
        if subscription.instruction is Instruction.DELETE_KEY_AND_PROPAGATE:
            value = None
        only_if = subscription.instruction is Instruction.PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE
        only_takes_back = only_if and entry is None
        response = Response(value, subscription.partition, subscription.value_hash, only_takes_back)
        timestamp = record.timestamp if entry is None else max(record.timestamp, entry.timestamp)
        key = self._key.deserialize(subscription.primary_key)
        self.context.forward(Record(key, response, timestamp, record.headers))


@dataclass(frozen=True)
class ForeignTableJoin:
    """Responds to all subscriptions of a key when the right table's value of it changes."""

    store: StoreBuilder
    this: TableSerdes
    other: TableSerdes
    versioned_semantics: bool = False

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the store of the subscriptions."""
        return (self.store,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _ForeignTableJoinProcessor(self)


class _ForeignTableJoinProcessor(AnyProcessor):
    def __init__(self, operator: ForeignTableJoin) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.store(self._operator.store.name)
        self._key, _ = self._operator.this.resolve(context)
        self._foreign_key, self._value = self._operator.other.resolve(context)

    def process(self, record: Record[Any, Any]) -> None:
        change: Change[Any] = record.value
        if record.key is None:
            self.context.skip("due to null key")
            return
        if self._operator.versioned_semantics and not change.is_latest:
            self.context.skip(OUT_OF_ORDER)
            return
        prefix = _prefix(self._foreign_key.serialize(record.key))
        value = self._value.to_bytes(change.new_value)
        for stored_key, entry in list(self._store.range(prefix, _after(prefix))):
            if stored_key.startswith(prefix):
                response = Response(value, entry.value.partition, entry.value.value_hash)
                key = self._key.deserialize(entry.value.primary_key)
                self.context.forward(Record(key, response, record.timestamp, record.headers))


@dataclass(frozen=True)
class ResponseJoin:
    """Joins a response with the left value that subscribed; drops a response to an older value.

    `results` is the store of the left entries that have a result; a left join needs none.
    """

    view: View
    joiner: Callable[[Any, Any], Any]
    results: StoreBuilder | None
    this: TableSerdes
    other: TableSerdes

    @property
    def stores(self) -> tuple[StoreBuilder, ...]:
        """Return the store of the left entries that have a result."""
        return () if self.results is None else (self.results,)

    def __call__(self) -> AnyProcessor:
        """Create the processor."""
        return _ResponseJoinProcessor(self)


class _ResponseJoinProcessor(AnyProcessor):
    def __init__(self, operator: ResponseJoin) -> None:
        self._operator = operator

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._table = self._operator.view.open(context)
        _, self._value = self._operator.this.resolve(context)
        _, self._foreign_value = self._operator.other.resolve(context)
        results = self._operator.results
        self._results: Any = None if results is None else context.store(results.name)

    def process(self, record: Record[Any, Any]) -> None:
        response: Response = record.value
        entry = self._table.get(record.key)
        this = None if entry is None else entry.value
        if response.value_hash != _hash(self._value.to_bytes(this)):
            self.context.skip("due to a newer value", is_logged=False)
            return
        other = self._foreign_value.from_bytes(response.value)
        if self._results is None:
            joined = None if this is None else self._operator.joiner(this, other)
        else:
            joined = None if this is None or other is None else self._operator.joiner(this, other)
            had_result = self._has_result(record.key, joined is not None)
            if response.only_takes_back and not had_result:
                return
        self.context.forward(record.with_value(joined))

    def _has_result(self, key: Any, has_one: bool) -> bool:
        """Record whether an entry has a result; return True if it had one before."""
        had_one = self._results.get(key) is not None
        if has_one != had_one:
            self._results.put(key, _HAS_RESULT if has_one else None)
        return had_one
