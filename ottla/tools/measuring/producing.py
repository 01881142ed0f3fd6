"""Send records at a rate and measure their latencies, as Apache Kafka's ProducerPerformance does."""

import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import OttlaError
from ottla.tools.measuring.latencies import Latencies, LatencyWindow
from ottla.tools.measuring.measured_producer import MeasuredProducer
from ottla.tools.measuring.pace import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducePlan:
    """The records to send: `rate` is in records per second, 0 or less for no limit.

    The first `warmup` records are not part of the steady state. With `transaction_s`, records are
    sent in transactions of that duration.
    """

    topic: str
    records: int
    rate: float = 0.0
    warmup: int = 0
    transaction_s: float | None = None


class ProduceResults:
    """The latencies of all records, and of those behind the warm-up.

    `on_window` is called with True for windows of the steady state.
    """

    def __init__(
        self,
        plan: ProducePlan,
        on_failure: Callable[[OttlaError], None],
        window_s: float = 5.0,
        on_window: Callable[[bool, LatencyWindow], None] = lambda is_steady, window: None,
    ) -> None:
        self._plan, self._window_s = plan, window_s
        self._on_failure, self._on_window = on_failure, on_window
        self.all = Latencies(
            plan.records, window_s, lambda window: on_window(False, window), plan.rate
        )
        self.steady: Latencies | None = None
        self._totals: list[dict[str, float]] = []

    def begin(self, number: int) -> None:
        """Note that a record is sent; the first one behind the warm-up begins the steady state."""
        plan = self._plan
        if number == plan.warmup > 0:
            self.steady = Latencies(
                plan.records - plan.warmup,
                self._window_s,
                lambda window: self._on_window(True, window),
                plan.rate,
            )
            self.all.is_silent = True

    def report(self, error: OttlaError | None, message: Any) -> None:
        """Note an acknowledged record, or report why it was not delivered."""
        if error is not None:
            self._on_failure(error)
            return
        latency_ms, size = int(message.latency() * 1000), len(message.value() or b"")
        self.all.record(latency_ms, size)
        if self.steady is not None and self.all.count > self._plan.warmup:
            self.steady.record(latency_ms, size)

    def summarize(self) -> None:
        """Compute the totals: later, time has passed without records."""
        parts = [self.all] if self.steady is None else [self.all, self.steady]
        self._totals = [latencies.summary() for latencies in parts]

    def totals(self) -> list[dict[str, float]]:
        """Return the totals of all records and, if there was a warm-up, of the steady state."""
        return self._totals

    def as_object(self) -> dict[str, Any]:
        """Return the totals, with the steady state's totals in an object of their own."""
        total, *steady = self._totals
        return {**total, "steady_state": steady[0]} if steady else dict(total)


def send_records(
    producer: MeasuredProducer, plan: ProducePlan, values: Iterator[bytes], results: ProduceResults
) -> None:
    """Send the records of a plan, wait for their acknowledgements, and compute the totals."""
    if plan.transaction_s is not None:
        producer.init_transactions()
        producer.begin_transaction()
    pace = Pace(plan.rate)
    begin = time.monotonic()
    for number in range(plan.records):
        results.begin(number)
        if plan.transaction_s is not None and time.monotonic() - begin >= plan.transaction_s:
            producer.commit_transaction()
            producer.begin_transaction()
            begin = time.monotonic()
        producer.send(plan.topic, next(values))
        pace.keep(number + 1)
    if plan.transaction_s is not None:
        producer.commit_transaction()
    producer.flush()
    results.summarize()


def random_values(size_bytes: int, seed: int = 0) -> Iterator[bytes]:
    """Return different values without end."""
    source = random.Random(seed)  # noqa: S311 - test data
    # Many different values from few random bytes: producing them must not limit the rate.
    pool = bytes(source.choices(range(65, 91), k=size_bytes + 4096))
    starts = (source.randrange(4096) for _ in itertools.count())
    return (pool[start : start + size_bytes] for start in starts)
