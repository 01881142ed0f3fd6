"""Rebalances of a consumer, handled after librdkafka has reported them.

librdkafka reports a rebalance in a callback, during which its binding makes the calls of all other
threads wait. So the callback only notes the rebalance: it is handled when librdkafka has returned,
and the listener can wait for the cluster in calls that Ctrl-C ends.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ottla.client import transport

_DEFERRAL = "must be made using assign() when rebalance protocol type is EAGER"
_STEP_S = 0.01


class Rebalancing(Exception):
    """Raised by a rebalance's callback to have librdkafka's `poll` return at once."""


class Rebalances:
    """The rebalance of one consumer that librdkafka has reported, until it is complete."""

    def __init__(self, consumer: Any, waits: transport.Waits, *, is_incremental: bool) -> None:
        self._consumer = consumer
        self._waits = waits
        self._is_incremental = is_incremental
        # A consumer with an assignor of Python reports rebalances outside of librdkafka.
        self._is_native = transport.is_native(consumer)
        self._is_polling = False
        self._reported: Callable[[], None] | None = None
        self._completion: Callable[[], None] | None = None

    @property
    def is_pending(self) -> bool:
        """True if `handle` must be called before librdkafka is polled again."""
        return self._reported is not None or self._completion is not None

    def poll(self, timeout_s: float) -> Any:
        """Return librdkafka's next message; None after the timeout or when a rebalance begins."""
        self._is_polling = True
        try:
            return self._consumer.poll(timeout_s)
        except Rebalancing:
            return None
        finally:
            self._is_polling = False

    def report(
        self,
        handle: Callable[[], None],
        completion: Callable[[], None],
        *,
        is_assignment: bool = False,
    ) -> None:
        """Leave a rebalance to `handle`; handle it now if librdkafka does not wait for it.

        Called in librdkafka's callback. `completion` ends the rebalance for librdkafka.
        """
        if self._is_native:
            self._defer(is_assignment=is_assignment)
            self._reported, self._completion = handle, completion
            if self._is_polling:
                raise Rebalancing
            return
        try:
            handle()
        finally:
            completion()

    def report_end(self, handle: Callable[[], None], rows: Sequence[Any]) -> None:
        """Leave a rebalance that revokes partitions to `handle`."""
        self.report(handle, partial(self._unassign, list(rows)))

    def handle(self, timeout_s: float = 0.0) -> bool:
        """Handle the rebalance; return False if an interrupted call lasts longer than the timeout:
        librdkafka's consumer waits for it.
        """
        reported, self._reported = self._reported, None
        deadline = time.monotonic() + timeout_s
        try:
            if reported is not None:
                reported()
            while self._waits.is_busy and time.monotonic() < deadline:
                time.sleep(_STEP_S)
        finally:
            if not self._waits.is_busy:
                self._complete()
        return not self.is_pending

    def decline(self) -> None:
        """Complete a rebalance while librdkafka leaves the group: it gives up all partitions.

        Otherwise the binding asks librdkafka for the group's protocol, and if librdkafka has left
        meanwhile, it waits for ever for the answer, with Python's lock.
        """
        if self._is_native:
            with suppress(transport.LibrdkafkaError):
                self._consumer.unassign()

    def end(self, leave: Callable[[], object]) -> None:
        """Leave librdkafka's group, which first waits for the completion of a rebalance."""
        self._complete()
        leave()

    def _complete(self) -> None:
        self._reported = None
        completion, self._completion = self._completion, None
        if completion is not None:
            completion()

    def _unassign(self, rows: list[Any]) -> None:
        if self._is_native and self._is_incremental:
            self._consumer.incremental_unassign(rows)
        elif self._is_native:
            self._consumer.unassign()

    def _defer(self, *, is_assignment: bool) -> None:
        """Let librdkafka wait for the completion of a rebalance after its callback has returned.

        The binding completes each rebalance whose callback has not called one of its methods. It
        also counts a call that changes nothing, and one that librdkafka refuses, because the
        protocol is not incremental.
        """
        with suppress(transport.LibrdkafkaError):
            if is_assignment and self._is_incremental:
                self._consumer.incremental_unassign([])
            else:
                self._consumer.incremental_assign([])


def is_deferral(record: logging.LogRecord) -> bool:
    """Return True for librdkafka's log line about a call that it refuses, see above."""
    return _DEFERRAL in record.getMessage()
