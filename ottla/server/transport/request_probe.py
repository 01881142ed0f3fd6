"""Counters of the dispatcher: requests, errors, and durations.

A request costs one addition. Every request of an infrequent kind is timed; of a frequent kind the
first and then one in sixteen, which counts for sixteen: reading the clock twice costs a tenth of
the smallest request. Errors are counted in responses that were created by a handler.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from ottla.metrics.histogram import Histogram, quantiles
from ottla.wire.api_keys import ApiKey
from ottla.wire.fields import Array, Nested, Struct

# One in this many requests is timed; a power of two.
SAMPLED = 16
_FREQUENT = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA})
_ERROR = "error_code"

# Adds the error codes of a response to counts by code, and returns the number of errors.
CountErrors = Callable[[Any, dict[int, int]], int]


@dataclass(frozen=True, slots=True)
class Times:
    """Histograms that are reported as one; requests in `none` took no time."""

    parts: tuple[Histogram, ...]
    none: Histogram | None = None

    @property
    def count(self) -> int:
        """The number of requests."""
        return sum(part.count for part in self.parts) + (self.none.count if self.none else 0)

    @property
    def sum(self) -> int:
        """The total duration."""
        return sum(part.sum for part in self.parts)

    def quantiles(self, shares: tuple[float, ...], now: float) -> Iterator[float]:
        """Return the durations below which these fractions (ascending) of the recent requests were."""
        counts = [
            sum(column) for column in zip(*(part.recent(now) for part in self.parts), strict=True)
        ]
        if self.none is not None:
            counts[0] += sum(self.none.recent(now))
        return quantiles(counts, shares)


class ApiProbe:
    """The figures of one API in all its versions; times in microseconds."""

    __slots__ = (
        "_at_once",
        "_count",
        "_local",
        "_remote",
        "_total",
        "errors",
        "name",
        "weight",
    )

    def __init__(self, key: ApiKey, response: type[Struct], name: str) -> None:
        self.name = name
        self.weight = SAMPLED if key in _FREQUENT else 1
        # The first of requests that got their response at once, the others of parked requests:
        # from the frame to the response, the time in the handler, the time of waiting.
        self._at_once = Histogram()
        self._total = Histogram()
        self._local = Histogram()
        self._remote = Histogram()
        self.errors: dict[int, int] = {}
        self._count = errors_of(response)

    def count_errors(self, response: Any) -> int:
        """Count the codes other than NONE; return how many there were."""
        return 0 if self._count is None else self._count(response, self.errors)

    def took(self, started: float, now: float) -> None:
        """Record a request that got its response at once; times in seconds of one clock."""
        self._at_once.observe(int((now - started) * 1_000_000), self.weight)

    def waited(self, started: float, parked: float, now: float) -> None:
        """Record a request that was parked at the time `parked`, and gets its response now."""
        self._total.observe(int((now - started) * 1_000_000), self.weight)
        self._local.observe(int((parked - started) * 1_000_000), self.weight)
        self._remote.observe(int((now - parked) * 1_000_000), self.weight)

    @property
    def total(self) -> Times:
        """The time from request to response."""
        return Times((self._at_once, self._total))

    @property
    def local(self) -> Times:
        """The part of the total time in which the broker worked."""
        return Times((self._at_once, self._local))

    @property
    def remote(self) -> Times:
        """The part of the total time in which the request was parked."""
        return Times((self._remote,), self._at_once)


def errors_of(struct: type[Struct]) -> CountErrors | None:
    """Return a function that counts the error codes in a value of this type; None without any."""
    has_own = any(field.name == _ERROR for field in struct.FIELDS)
    arrays: list[tuple[Callable[[Any], Any], CountErrors]] = []
    for field in struct.FIELDS:
        kind = field.type.item if isinstance(field.type, Array) else field.type
        count_nested = errors_of(kind.struct) if isinstance(kind, Nested) else None
        if count_nested is not None:
            get = attrgetter(field.name)
            arrays.append((get if isinstance(field.type, Array) else _alone(get), count_nested))
    if not arrays:
        return _count_own if has_own else None

    def count(value: Any, counts: dict[int, int]) -> int:
        number = _count_own(value, counts) if has_own and value.error_code else 0
        for get, look in arrays:
            for item in get(value) or ():
                if look is not _count_own or item.error_code:
                    number += look(item, counts)
        return number

    return count


def _count_own(value: Any, counts: dict[int, int]) -> int:
    code = int(value.error_code)
    if code:
        counts[code] = counts.get(code, 0) + 1
    return bool(code)


def _alone(get: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a getter that wraps the value of a single field into a tuple."""

    def items(value: Any) -> tuple[Any, ...]:
        single = get(value)
        return () if single is None else (single,)

    return items
