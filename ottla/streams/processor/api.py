"""The Processor API: the base classes of user processors, and their context.

Not done: of Kafka's context `taskId` (a `TaskId`), `stateDir` and `metrics`. `ProcessorWrapper`:
wrap a supplier before you pass it to the topology.
"""

import enum
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.streams.expressions.arity import check_method
from ottla.streams.expressions.columns import Column, PysparkColumn
from ottla.streams.model.durations import Duration, Instant
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.records import Header, Record, RecordMetadata
from ottla.streams.serdes import DefaultSerdes, Serde
from ottla.streams.stores.builders import StoreBuilder

KIn = TypeVar("KIn", contravariant=True)
VIn = TypeVar("VIn", contravariant=True)
KOut = TypeVar("KOut", covariant=True)
VOut = TypeVar("VOut", covariant=True)
KFixed = TypeVar("KFixed")
VFixed = TypeVar("VFixed")
Part = TypeVar("Part")

if TYPE_CHECKING:
    # Type parameter defaults come with Python 3.13; type checkers know this package without it.
    from typing_extensions import TypeVar as TypeVarWithDefault

    KForward = TypeVarWithDefault("KForward", default=Any)
    VForward = TypeVarWithDefault("VForward", default=Any)
else:
    KForward, VForward = TypeVar("KForward"), TypeVar("VForward")


class PunctuationType(enum.Enum):
    """The clock of a punctuator (Kafka's PunctuationType)."""

    STREAM_TIME = "stream time"
    WALL_CLOCK_TIME = "wall-clock time"


class Cancellable(Protocol):
    """A handle of a scheduled punctuator."""

    def cancel(self) -> None:
        """Cancel the punctuator."""


class ProcessorContext(Protocol[KForward, VForward]):
    """The interface of a task for its processors; all times are in milliseconds.

    The type parameters are the types of the key and value that are forwarded; Any by default.
    """

    @property
    def application_id(self) -> str:
        """The application id."""

    @property
    def default_serdes(self) -> DefaultSerdes:
        """The default serdes of the application."""

    @property
    def key_serde(self) -> Serde[Any]:
        """The default serde of keys."""

    @property
    def value_serde(self) -> Serde[Any]:
        """The default serde of values."""

    @property
    def emit_interval_ms(self) -> int:
        """The minimum wall-clock time between two checks for closed windows."""

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """The topic, partition and offset of the current record; None in a punctuator."""

    @property
    def task_partition(self) -> int:
        """The number of the task within its sub-topology, which is the partition that it reads."""

    def forward(self, record: Record[KForward, VForward], child: str | None = None) -> None:
        """Forward a record to all children, or to the child of that name."""

    def schedule(
        self,
        interval: Duration,
        punctuation: PunctuationType,
        callback: Callable[[int], Any],
        *,
        start: Instant | None = None,
    ) -> Cancellable:
        """Call a function with the current time at each interval of stream time or wall-clock time.

        If `start` is given, the calls are at whole intervals from `start` on (KIP-1146).
        """

    def get_state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor, or a global store."""

    def store(self, name: str) -> Any:
        """Return a store; an alias of `get_state_store`, with the name that KafkaStreams uses."""

    def current_stream_time_ms(self) -> int:
        """Return the largest timestamp of all records this task has read; -1 before the first."""

    def current_system_time_ms(self) -> int:
        """Return the wall-clock time; in a test driver, it changes only when it is advanced."""

    def skip(self, reason: str, *, is_logged: bool = True, **facts: object) -> None:
        """Count the current record as dropped and log it, at a limited rate (Kafka's
        dropped-records).
        """

    def app_configs(self) -> dict[str, Any]:
        """Return the options of the application: its own, and those that are numbers or strings."""

    def app_configs_with_prefix(self, prefix: str) -> dict[str, Any]:
        """Return the options whose names start with a prefix, with the prefix removed."""

    def commit(self) -> None:
        """Request a commit soon."""

    def add_part(self, part: Part) -> Callable[[], Part]:
        """Keep an object, and close it, like a field of the processor; return its getter."""

    def as_of(self, metadata: RecordMetadata | None) -> AbstractContextManager[None]:
        """Set the metadata of a buffered record while it is processed further."""


class Processor(Generic[KIn, VIn, KOut, VOut]):
    """A processor of records; subclasses implement `process`.

    `stores` lists the stores that the topology adds and connects to the processor.
    """

    stores: tuple[StoreBuilder, ...] | list[StoreBuilder] = ()
    context: ProcessorContext

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = "; call super().init(context) in its init" if name == "context" else ""
            raise AttributeError(f"{type(self).__name__} has no {name}{hint}")

    def init(self, context: ProcessorContext) -> None:
        """Initialize the processor, before the first record. Call `super().init(context)` in
        overrides.
        """
        self.context = context

    def process(self, record: Record[KIn, VIn]) -> None:
        """Process one record."""
        raise TypeError(f"{type(self).__name__} must define process")

    def close(self) -> None:
        """Close the processor; no records follow."""


class FixedKeyProcessor(Processor[KFixed, VIn, KFixed, VOut], Generic[KFixed, VIn, VOut]):
    """A processor for `process_values`: it must forward records with the same key."""


ContextualProcessor = Processor
"""Kafka's processor that stores its context, as every Processor does here."""

ContextualFixedKeyProcessor = FixedKeyProcessor
"""Kafka's fixed-key processor that stores its context, as every FixedKeyProcessor does here."""

FixedKeyProcessorContext = ProcessorContext
"""The context of a fixed-key processor: forwarded records must keep the key."""

FixedKeyRecord = Record[KFixed, VFixed]
"""The record of a fixed-key processor; forwarding it with another key is an error."""

Supplier = Callable[[], Processor[Any, Any, Any, Any]]
"""A callable that returns a new processor at each call: a processor class, a ProcessorSupplier or a
function.
"""


class ProcessorSupplier(Generic[KIn, VIn, KOut, VOut]):
    """A factory of processors with their stores; subclasses implement `get`.

    It is optional: you can also pass a processor class, or a function that returns a processor.
    """

    def get(self) -> Processor[KIn, VIn, KOut, VOut]:
        """Return a new processor; each task has its own."""
        raise TypeError(f"{type(self).__name__} must define get")

    def stores(self) -> Iterable[StoreBuilder]:
        """Return the stores that a topology adds and connects (Kafka's ConnectedStoreProvider)."""
        return ()

    def __call__(self) -> Processor[KIn, VIn, KOut, VOut]:
        """Return a new processor."""
        return self.get()


class FixedKeyProcessorSupplier(
    ProcessorSupplier[KFixed, VIn, KFixed, VOut], Generic[KFixed, VIn, VOut]
):
    """A factory of processors for `process_values`."""


class ValueTransformerWithKey(Generic[KIn, VIn, VOut]):
    """A stateful mapper of a table's values; subclasses implement `transform`."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Initialize the transformer. Call `super().init(context)` in overrides."""
        self.context = context

    def transform(self, key: KIn, value: VIn) -> VOut:
        """Return the new value; the given value may be None."""
        raise TypeError(f"{type(self).__name__} must define transform")

    def close(self) -> None:
        """Close the transformer; no calls follow."""


class ValueTransformerWithKeySupplier(Generic[KIn, VIn, VOut]):
    """A factory of transformers with their stores, like ProcessorSupplier."""

    def get(self) -> ValueTransformerWithKey[KIn, VIn, VOut]:
        """Return a new transformer; each task has its own."""
        raise TypeError(f"{type(self).__name__} must define get")

    def stores(self) -> Iterable[StoreBuilder]:
        """Return the stores that a topology adds and connects."""
        return ()

    def __call__(self) -> ValueTransformerWithKey[KIn, VIn, VOut]:
        """Return a new transformer."""
        return self.get()


class TimestampedRecord(NamedTuple):
    """A record of a source topic, as it is passed to a timestamp extractor."""

    key: Any
    value: Any
    timestamp: int
    topic: str
    partition: int
    offset: int
    headers: Sequence[Header] = ()


class ExtractsTime(Protocol):
    """The interface of the objects that extractor classes create."""

    def __call__(self, record: TimestampedRecord, partition_time: int, /) -> int:
        """Return the timestamp of a record in ms.

        A negative timestamp is an error, unless the class also has `extract`.
        """


TimestampExtractor = (
    Callable[[TimestampedRecord], int]
    | Callable[[TimestampedRecord, int], int]
    | type[ExtractsTime]
    | Column
    | PysparkColumn
)
"""A function that returns the timestamp of a record in ms. An object or class with Kafka's method
`extract`, or a Column of key and value, is also accepted. A negative timestamp is an error; from an
`extract` method, it drops the record.

A function of two arguments also gets the largest timestamp of the partition so far, -1 before the
first. On Spark this is reset with every micro-batch.
"""


class RecordContext(NamedTuple):
    """The context of the current record, for topic name extractors (Kafka's RecordContext).

    In a punctuator, the topic is None, and partition and offset are -1. Raw key and value come from
    the source record.
    """

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Sequence[Header]
    source_raw_key: bytes | None
    source_raw_value: bytes | None


TopicNameExtractor = Callable[..., str] | Column | PysparkColumn
"""A function that returns a record's topic, from the value, from key and value, or from key, value
and a RecordContext.
"""

StreamPartitioner = (
    Callable[[str, Any, Any, int], int | Iterable[int] | None] | Column | PysparkColumn
)
"""A function that returns a record's partition, from topic, key, value and the number of
partitions; or a Column of key and value.

None selects the partition by key. For several partitions, each gets the record; for an empty set,
it is dropped (KIP-837).
"""


def supplied_stores(supplier: Callable[[], Any]) -> tuple[StoreBuilder, ...]:
    """Return the stores of a supplier or a processor class; an empty result if it has no stores.

    Raises TopologyError for an item that is not a StoreBuilder.
    """
    stores = getattr(supplier, "stores", None)
    brought = tuple((stores() if callable(stores) else stores) or ())
    for store in brought:
        if not isinstance(store, StoreBuilder):
            name = getattr(supplier, "__name__", type(supplier).__name__)
            raise TopologyError(
                f"the stores of {name} must be descriptions such as Stores.key_value('name'), not {store!r}"
            )
    return brought


def check_supplier(supplier: Any, subject: str, method: str = "process") -> None:
    """Raise TopologyError if a supplier returns no processor, or always the same one.

    The error contains the correct form. `method` is the method that processors must have. A
    supplier that is not a class is called twice, as in Kafka.
    """
    name = getattr(supplier, "__name__", type(supplier).__name__)
    if isinstance(supplier, type) and issubclass(supplier, ProcessorSupplier):
        raise TopologyError(f"{subject} takes an instance of the supplier: {name}(), not {name}")
    if not callable(supplier):
        raise TopologyError(
            f"{subject} takes a processor class or a function that returns a processor, because each task has one of "
            f"its own; not {supplier!r}"
        )
    if isinstance(supplier, type) and callable(getattr(supplier, "stores", None)):
        raise TopologyError(
            f"the stores of {name} must be a list in its class: stores = [Stores.key_value(…)]"
        )
    processor = supplier if isinstance(supplier, type) else supplier()
    if not callable(getattr(processor, method, None)):
        raise TopologyError(
            f"{subject} takes a processor class or a function that returns a processor: {name} returns {processor!r}, not a "
            f"processor with a method {method}"
        )
    _check_methods(supplier if isinstance(supplier, type) else type(processor), method)
    if not isinstance(supplier, type) and supplier() is processor:
        raise TopologyError(
            f"{subject} takes a function that returns a processor, because each task has one of its own: {name} "
            f"returns the same {type(processor).__name__} at each call; return a new one"
        )


def _check_methods(kind: type, method: str) -> None:
    """Raise TopologyError if a method of a processor class has other parameters than Kafka's."""
    check_method(kind, "init", ("context",))
    check_method(kind, "close", ())
    if method == "process":
        check_method(kind, method, ("record",), ", and read record.key and record.value")
    else:
        check_method(kind, method, ("key", "value"))
