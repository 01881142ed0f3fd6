"""One table of metrics, keyed by JMX object names; the dialects and `/jmx` are renderings of it.

A `Bean` is the constant part of a metric: Kafka's object name and its kind. A `Measurement` has the
bean's values at the time of a scrape, one for each set of further key properties. Nothing here is
on a hot path: the broker counts in plain integers, and a scrape reads them. Follows
kafka.metrics.KafkaMetricsGroup (Yammer's beans) and org.apache.kafka.common.metrics.JmxReporter
(Kafka's own, whose metrics are attributes of a bean).
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

from ottla.metrics.exposition import Sample, labels

# The quantiles of a timer, as Kafka's beans have them.
SHARES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class BeanKind(Enum):
    """The attributes of a bean: a value, a count with its rates, or a distribution."""

    GAUGE = "gauge"
    METER = "meter"
    # A meter of idle nanoseconds, whose rate is a fraction of the time.
    IDLE = "idle"
    TIMER = "timer"
    # A metric that is an attribute of a bean with others: a value, or a count.
    ATTRIBUTE = "attribute"
    TOTAL = "total"


class Distribution(NamedTuple):
    """The value of a timer: count and sum of all values; quantiles (SHARES) of the recent ones."""

    values_count: int
    sum: float
    quantiles: tuple[float, ...]


class Counted(Protocol):
    """The counts that a distribution is made from, in microseconds."""

    @property
    def count(self) -> int:
        """The number of values."""
        ...

    @property
    def sum(self) -> int:
        """Their sum."""
        ...

    def quantiles(self, shares: tuple[float, ...], now: float) -> Iterator[float]:
        """Return the quantiles of the recent values."""
        ...


def distribution(counted: Counted, now: float) -> Distribution:
    """Return a distribution in milliseconds; `now` is a time of the monotonic clock in seconds."""
    quantiles = tuple(value / 1000 for value in counted.quantiles(SHARES, now))
    return Distribution(counted.count, counted.sum / 1000, quantiles)


class Idle(NamedTuple):
    """The value of an idle meter: nanoseconds since the start, and the recent fraction (0 to 1)."""

    nanoseconds: int
    share: float


Value = float | str | Distribution | Idle


class Properties:
    """The key properties of an object name after type and name; `text` has them as labels."""

    __slots__ = ("_given", "text")

    def __init__(self, **pairs: object) -> None:
        self._given = pairs
        self.text = labels(**pairs)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The keys and their values, in the order of the name."""
        return tuple((key, str(value)) for key, value in self._given.items())


NONE = Properties()
LabelledValue = tuple[Properties, Value]


class Bean(NamedTuple):
    """The constant part of a metric: `domain:type=TYPE,name=NAME`, or an attribute NAME of TYPE."""

    domain: str
    type: str
    name: str
    kind: BeanKind
    help: str

    @property
    def is_attribute(self) -> bool:
        """True if the metric shares its object name with others of its type."""
        return self.kind in (BeanKind.ATTRIBUTE, BeanKind.TOTAL)

    def of(self, rows: "Iterable[LabelledValue] | float | str | Idle") -> "Measurement":
        """Return a measurement; `rows` may be the value of a bean without further properties."""
        if isinstance(rows, float | int | str | Idle):
            return Measurement(self, [(NONE, rows)])
        return Measurement(self, rows)


class Measurement(NamedTuple):
    """The values of a bean; `rows` can be iterated several times, once for each rendering."""

    bean: Bean
    rows: Iterable[LabelledValue]


T = TypeVar("T")


class Computed(Generic[T]):
    """Rows whose numbers are computed while they are written, from items with their properties.

    An item without a value is omitted.
    """

    def __init__(
        self,
        items: Iterable[tuple[Properties, T]],
        value: Callable[[T], float | None],
    ) -> None:
        self._items = items
        self._value = value

    def __iter__(self) -> Iterator[LabelledValue]:
        for properties, item in self._items:
            value = self._value(item)
            if value is not None:
                yield properties, value

    def samples(self) -> Iterator[Sample]:
        """Yield labels and values: the same as the rows, for the format that is written most."""
        value_of = self._value
        for properties, item in self._items:
            value = value_of(item)
            if value is not None:
                yield properties.text, value


class Beans:
    """Declares the beans of one type: `Beans("kafka.server", "ReplicaManager").gauge(NAME, HELP)`."""

    def __init__(self, domain: str, bean_type: str) -> None:
        self._domain = domain
        self._type = bean_type

    def gauge(self, name: str, help_text: str) -> Bean:
        """Return a bean with one value."""
        return Bean(self._domain, self._type, name, BeanKind.GAUGE, help_text)

    def meter(self, name: str, help_text: str) -> Bean:
        """Return a bean with a count that only increases; its name ends with PerSec."""
        return Bean(self._domain, self._type, name, BeanKind.METER, help_text)

    def idle(self, name: str, help_text: str) -> Bean:
        """Return a meter of idle time; its name ends with Percent."""
        return Bean(self._domain, self._type, name, BeanKind.IDLE, help_text)

    def timer(self, name: str, help_text: str) -> Bean:
        """Return a bean with a distribution."""
        return Bean(self._domain, self._type, name, BeanKind.TIMER, help_text)

    def attribute(self, name: str, help_text: str) -> Bean:
        """Return an attribute with one value."""
        return Bean(self._domain, self._type, name, BeanKind.ATTRIBUTE, help_text)

    def total(self, name: str, help_text: str) -> Bean:
        """Return an attribute with a count; its name ends with -total."""
        return Bean(self._domain, self._type, name, BeanKind.TOTAL, help_text)
