"""The Processor API: what a user's processor is, and what its context does for it.

Not done: of Kafka's context `taskId` (a `TaskId`), `stateDir` and `metrics`. `ProcessorWrapper`: a supplier is wrapped where it is handed over.
"""

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.streams.expressions.columns import Column, PysparkColumn
from ottla.streams.model.durations import Duration, Instant
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.records import Header, Record, RecordMetadata
from ottla.streams.serdes import Serde
from ottla.streams.stores.builders import DefaultSerdes, StoreBuilder

KIn = TypeVar("KIn", contravariant=True)
VIn = TypeVar("VIn", contravariant=True)
KOut = TypeVar("KOut", covariant=True)
VOut = TypeVar("VOut", covariant=True)
KFixed = TypeVar("KFixed")
VFixed = TypeVar("VFixed")

if TYPE_CHECKING:
    # Defaults come with Python 3.13; type checkers know this package by themselves.
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
    """A punctuator that was scheduled."""

    def cancel(self) -> None:
        """Do not call it any more."""


class ProcessorContext(Protocol[KForward, VForward]):
    """What a processor may ask of the task it runs in; all times are in milliseconds.

    Its types are those of the key and value that are forwarded; any without them.
    """

    @property
    def application_id(self) -> str:
        """The application's name."""

    @property
    def default_serdes(self) -> DefaultSerdes:
        """The serdes of what was given none."""

    @property
    def key_serde(self) -> Serde[Any]:
        """The serde of keys that were given none."""

    @property
    def value_serde(self) -> Serde[Any]:
        """The serde of values that were given none."""

    @property
    def emit_interval_ms(self) -> int:
        """How much wall-clock time lies at least between two looks for windows that closed."""

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Where the current record was read; None in a punctuator."""

    @property
    def task_partition(self) -> int:
        """The number of the task within its sub-topology: the partition whose records it takes."""

    def forward(self, record: Record[KForward, VForward], child: str | None = None) -> None:
        """Send a record to all children, or to one by its name."""

    def schedule(
        self,
        interval: Duration,
        punctuation: PunctuationType,
        callback: Callable[[int], Any],
        *,
        start: Instant | None = None,
    ) -> Cancellable:
        """Call back with the time whenever the interval passed on one of the two clocks.

        From `start` on, if it is given, and at whole intervals from there (KIP-1146).
        """

    def get_state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor, or a global one."""

    def store(self, name: str) -> Any:
        """Return the same as `get_state_store`, by the name that KafkaStreams has for it."""

    def current_stream_time_ms(self) -> int:
        """Return the largest time of any record this task took; -1 before the first."""

    def current_system_time_ms(self) -> int:
        """Return the wall clock; in a test driver it stands still until it is advanced."""

    def skip(self, reason: str, **facts: object) -> None:
        """Count and log that the current record is dropped, at a limited rate (Kafka's dropped-records)."""

    def app_configs(self) -> dict[str, Any]:
        """Return the options of the application: its own, and those that are numbers and text."""

    def app_configs_with_prefix(self, prefix: str) -> dict[str, Any]:
        """Return the options whose names start with a prefix, without it."""

    def commit(self) -> None:
        """Ask for a commit soon."""

    def as_of(self, metadata: RecordMetadata | None) -> AbstractContextManager[None]:
        """Let a record that waited go on as the one that was read there."""


class Processor(Generic[KIn, VIn, KOut, VOut]):
    """Takes records one by one; subclasses say in `process` what they do with them.

    `stores` names the stores it brings along; a topology adds and connects them.
    """

    stores: tuple[StoreBuilder, ...] | list[StoreBuilder] = ()
    context: ProcessorContext

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = "; call super().init(context) in its init" if name == "context" else ""
            raise AttributeError(f"{type(self).__name__} has no {name}{hint}")

    def init(self, context: ProcessorContext) -> None:
        """Start: called once before the first record. Call `super().init(context)` when overriding."""
        self.context = context

    def process(self, record: Record[KIn, VIn]) -> None:
        """Take one record."""
        raise TypeError(f"{type(self).__name__} does not say what it does: define process")

    def close(self) -> None:
        """End: nothing comes after."""


class FixedKeyProcessor(Processor[KFixed, VIn, KFixed, VOut], Generic[KFixed, VIn, VOut]):
    """A processor for `process_values`: what it forwards must keep the key."""


ContextualProcessor = Processor
"""Kafka's processor that keeps its context: here each does."""

ContextualFixedKeyProcessor = FixedKeyProcessor
"""Kafka's fixed-key processor that keeps its context: here each does."""

FixedKeyProcessorContext = ProcessorContext
"""The context of a fixed-key processor: what it forwards keeps its key."""

FixedKeyRecord = Record[KFixed, VFixed]
"""What a fixed-key processor takes and forwards: a record; forwarding it under another key is an error."""

Supplier = Callable[[], Processor[Any, Any, Any, Any]]
"""Makes a new processor at each call; a processor class is one, and so is a ProcessorSupplier."""


class ProcessorSupplier(Generic[KIn, VIn, KOut, VOut]):
    """Makes processors and says which stores they bring along; subclasses say in `get` which.

    Nobody needs one: a processor class, or a function that returns a processor, does as well.
    """

    def get(self) -> Processor[KIn, VIn, KOut, VOut]:
        """Return a new processor; each task has its own."""
        raise TypeError(f"{type(self).__name__} does not say what it makes: define get")

    def stores(self) -> Iterable[StoreBuilder]:
        """Return the stores that a topology adds and connects (Kafka's ConnectedStoreProvider)."""
        return ()

    def __call__(self) -> Processor[KIn, VIn, KOut, VOut]:
        """Make a processor."""
        return self.get()


class FixedKeyProcessorSupplier(
    ProcessorSupplier[KFixed, VIn, KFixed, VOut], Generic[KFixed, VIn, VOut]
):
    """The same, for `process_values`."""


class ValueTransformerWithKey(Generic[KIn, VIn, VOut]):
    """Makes new values of a table's entries with the help of stores; subclasses say how in `transform`."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Start: called once. Call `super().init(context)` when overriding."""
        self.context = context

    def transform(self, key: KIn, value: VIn) -> VOut:
        """Return the new value; the value may be None."""
        raise TypeError(f"{type(self).__name__} does not say what it does: define transform")

    def close(self) -> None:
        """End: nothing comes after."""


class ValueTransformerWithKeySupplier(Generic[KIn, VIn, VOut]):
    """Makes transformers and says which stores they bring along, as a ProcessorSupplier does for processors."""

    def get(self) -> ValueTransformerWithKey[KIn, VIn, VOut]:
        """Return a new transformer; each task has its own."""
        raise TypeError(f"{type(self).__name__} does not say what it makes: define get")

    def stores(self) -> Iterable[StoreBuilder]:
        """Return the stores that a topology adds and connects."""
        return ()

    def __call__(self) -> ValueTransformerWithKey[KIn, VIn, VOut]:
        """Make a transformer."""
        return self.get()


class TimestampedRecord(NamedTuple):
    """A record of a source topic as a timestamp extractor sees it."""

    key: Any
    value: Any
    timestamp: int
    topic: str
    partition: int
    offset: int
    headers: Sequence[Header] = ()


class ExtractsTime(Protocol):
    """What a class of extractors makes."""

    def __call__(self, record: TimestampedRecord, partition_time: int, /) -> int:
        """Return the time of a record, in ms; a negative one is an error, unless the class also has `extract`."""


TimestampExtractor = (
    Callable[[TimestampedRecord], int]
    | Callable[[TimestampedRecord, int], int]
    | type[ExtractsTime]
    | Column
    | PysparkColumn
)
"""Gives the time of a record; a negative one is an error, unless it comes of an object with Kafka's method `extract`, which drops the
record. The class of one does as well, and a Column of key and value.

One of two arguments is also told the largest time that its partition had so far, -1 before the first.
On Spark that begins anew with every micro-batch.
"""


class RecordContext(NamedTuple):
    """What a topic name extractor is told of the record that is being processed (Kafka's RecordContext).

    Topic None, partition and offset -1: it comes from a punctuator. Raw key and value are those of the source.
    """

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Sequence[Header]
    source_raw_key: bytes | None
    source_raw_value: bytes | None


TopicNameExtractor = Callable[..., str] | Column | PysparkColumn
"""Gives the topic of a record: of its value, of its key and value, or of key, value and a RecordContext."""

StreamPartitioner = (
    Callable[[str, Any, Any, int], int | Iterable[int] | None] | Column | PysparkColumn
)
"""Gives the partition of a record, from topic, key, value and the number of partitions; or is a Column of key and value.

None leaves it to the key; several get the record each, and none of them (an empty set) drops it (KIP-837).
"""

StoreMap = Mapping[str, Any]


def supplied_stores(supplier: Callable[[], Any]) -> tuple[StoreBuilder, ...]:
    """Return the stores that a supplier, or the processor class that it is, brings along; None is none.

    Raises TopologyError for what is no description of a store.
    """
    stores = getattr(supplier, "stores", None)
    brought = tuple((stores() if callable(stores) else stores) or ())
    for store in brought:
        if not isinstance(store, StoreBuilder):
            name = getattr(supplier, "__name__", type(supplier).__name__)
            raise TopologyError(
                f"the stores of {name} are descriptions such as Stores.key_value('name'), not {store!r}"
            )
    return brought


def check_supplier(supplier: Any, what: str, method: str = "process") -> None:
    """Raise TopologyError for what makes no processors, or always the same one, with what to write instead.

    `method` is what each of them has. A supplier that is no class is called twice, as Kafka does.
    """
    name = getattr(supplier, "__name__", type(supplier).__name__)
    if isinstance(supplier, type) and issubclass(supplier, ProcessorSupplier):
        raise TopologyError(f"{what} takes a supplier that was made: {name}(), not {name}")
    if not callable(supplier):
        raise TopologyError(
            f"{what} takes a processor class or a function that makes a processor, because each task has one of "
            f"its own; not {supplier!r}"
        )
    if isinstance(supplier, type) and callable(getattr(supplier, "stores", None)):
        raise TopologyError(
            f"the stores of {name} are a list in its class: stores = [Stores.key_value(…)]"
        )
    made = supplier if isinstance(supplier, type) else supplier()
    if not callable(getattr(made, method, None)):
        raise TopologyError(
            f"{what} takes a processor class or a function that makes a processor: {name} makes {made!r}, not a "
            f"processor with a method {method}"
        )
    if not isinstance(supplier, type) and supplier() is made:
        raise TopologyError(
            f"{what} takes a function that makes a processor, because each task has one of its own: {name} "
            f"returns the same {type(made).__name__} at each call; return a new one"
        )
