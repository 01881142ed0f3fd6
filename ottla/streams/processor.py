"""The Processor API: what a user's processor is, and what its context does for it."""

import enum
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.streams.durations import Duration
from ottla.streams.records import Record, RecordMetadata
from ottla.streams.stores.builders import DefaultSerdes, StoreBuilder

KIn = TypeVar("KIn", contravariant=True)
VIn = TypeVar("VIn", contravariant=True)
KOut = TypeVar("KOut", covariant=True)
VOut = TypeVar("VOut", covariant=True)
KFixed = TypeVar("KFixed")


class PunctuationType(enum.Enum):
    """The clock of a punctuator (Kafka's PunctuationType)."""

    STREAM_TIME = "stream time"
    WALL_CLOCK_TIME = "wall-clock time"


class Cancellable(Protocol):
    """A punctuator that was scheduled."""

    def cancel(self) -> None:
        """Do not call it any more."""


class ProcessorContext(Protocol):
    """What a processor may ask of the task it runs in; all times are in milliseconds."""

    @property
    def application_id(self) -> str:
        """The application's name."""

    @property
    def default_serdes(self) -> DefaultSerdes:
        """The serdes of what was given none."""

    @property
    def emit_interval_ms(self) -> int:
        """How much wall-clock time lies at least between two looks for windows that closed."""

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Where the current record was read; None in a punctuator."""

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Send a record to all children, or to one by its name."""

    def schedule(
        self, interval: Duration, punctuation: PunctuationType, callback: Callable[[int], Any]
    ) -> Cancellable:
        """Call back with the time whenever the interval passed on one of the two clocks."""

    def store(self, name: str) -> Any:
        """Return a store that is connected to this processor, or a global one."""

    def current_stream_time_ms(self) -> int:
        """Return the largest time of any record this task took; -1 before the first."""

    def current_system_time_ms(self) -> int:
        """Return the wall clock; in a test driver it stands still until it is advanced."""

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


ProcessorSupplier = Callable[[], Processor[Any, Any, Any, Any]]
"""Makes a new processor at each call; a processor class is one."""


class TimestampedRecord(NamedTuple):
    """A record of a source topic as a timestamp extractor sees it."""

    key: Any
    value: Any
    timestamp: int
    topic: str
    partition: int
    offset: int


TimestampExtractor = Callable[[TimestampedRecord], int]
"""Gives the time of a record; a negative one drops it."""

TopicNameExtractor = Callable[..., str]
"""Gives the topic of a record, from its value, or its key and value."""

StreamPartitioner = Callable[[str, Any, Any, int], int | None]
"""Gives the partition of a record, from topic, key, value and the number of partitions."""

StoreMap = Mapping[str, Any]


def supplied_stores(supplier: ProcessorSupplier) -> tuple[StoreBuilder, ...]:
    """Return the stores that a supplier, or the processor class that it is, brings along."""
    return tuple(getattr(supplier, "stores", ()) or ())
