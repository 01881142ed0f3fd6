"""Commits by librdkafka's consumer, or by another object with its methods.

Results of commits in the background arrive in `poll`.

Not done: with options of TLS and SASL that only librdkafka has, metadata ends with a NUL character,
other clients' metadata may be read wrongly, and Ctrl-C does not end the commit of a rebalance while
the coordinator is silent.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from ottla.client import transport
from ottla.client.group.offset_requests import Offsets
from ottla.client.records import TopicPartition

_STEP_S = 0.05


class PolledCommits:
    """Sends commits by librdkafka's consumer, or by another object with its methods.

    For one thread.
    """

    def __init__(self, waits: transport.Waits) -> None:
        self._consumer: Any = None
        self._waits = waits
        self._is_in_callback: Callable[[], bool]
        self._sent: list[tuple[Offsets, Future[None]]] = []

    @property
    def is_busy(self) -> bool:
        """True while a call of `commit` continues that was interrupted."""
        return self._waits.is_busy

    def open(self, consumer: Any, is_in_callback: Callable[[], bool]) -> None:
        """Commit with this consumer, which calls `committed` with results.

        `is_in_callback` returns True during a rebalance.
        """
        self._consumer, self._is_in_callback = consumer, is_in_callback

    def send(self, offsets: Offsets) -> "Future[None]":
        """Commit in the background; a later `poll` ends the future, with LibrdkafkaError or not."""
        done: Future[None] = Future()
        self._sent.append((offsets, done))
        self._consumer.commit(offsets=transport.commit_list(offsets), asynchronous=True)
        return done

    def committed(self, cause: Any, rows: Sequence[Any]) -> None:
        """Take the result of a commit in the background; librdkafka calls this in `poll`."""
        here = {(row.topic, row.partition): row.offset for row in rows}
        for index, (offsets, done) in enumerate(self._sent):
            if {tuple(key): offset for key, (offset, _) in offsets.items()} == here:
                del self._sent[index]
                errors = [row.error for row in rows if row.error is not None]
                error = cause or next(iter(errors), None)
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(transport.LibrdkafkaError(error))
                return

    def commit(self, offsets: Offsets, timeout_s: float) -> None:
        """Commit after earlier calls and wait; LibrdkafkaError, TimedOut or Closed."""
        if self._is_in_callback():
            # librdkafka waits for the listener, and would serve no other thread until it returns.
            self._now(offsets)
        else:
            self._waits.call(lambda: self._now(offsets), timeout_s)

    def finish(
        self,
        partitions: Iterable[TopicPartition],
        sent: Sequence["Future[None]"],
        is_over: Callable[[], bool],
    ) -> Iterator[Any]:
        """Wait for commits in the background, while the partitions are paused.

        Yields the messages that librdkafka returns during the wait.
        """
        if sent:
            self._consumer.pause(transport.partitions(dict.fromkeys(partitions, transport.STORED)))
        while not all(one.done() for one in sent) and not is_over():
            message = self._consumer.poll(_STEP_S)
            if message is not None:
                yield message

    def _now(self, offsets: Offsets) -> None:
        rows = transport.commit_list(offsets)
        for row in self._consumer.commit(offsets=rows, asynchronous=False):
            if row.error is not None:
                raise transport.LibrdkafkaError(row.error)
