"""Sends the outcome of one transaction to every partition that it wrote to.

Markers are retried until every partition has one. Retries end only if the coordinator loses its
partition; the next coordinator starts again, so a marker may be written twice. Follows
TransactionMarkerChannelManager.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import islice

from ottla.base.errors import ErrorCode
from ottla.coordinators.ports import Marker, MarkerWriter
from ottla.coordinators.replies import Reply
from ottla.coordinators.timers import Timers
from ottla.coordinators.txn.state import TopicPartition, TransactionMetadata, TransactionState

_log = logging.getLogger(__name__)

# After this many markers other requests are served.
MARKERS_AT_ONCE = 100
RETRY_MS = 100

_Codes = Mapping[TopicPartition, ErrorCode]
# Nothing is left to be done there: in a later epoch the transaction has ended, somehow.
_DONE = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH})


class Sending:
    """The markers of one prepared transaction; `on_done` is called once, when all are written.

    `is_gone` returns whether a partition no longer exists in the cluster.
    """

    def __init__(
        self,
        transaction: TransactionMetadata,
        coordinator_epoch: int,
        writer: MarkerWriter,
        timers: Timers,
        *,
        is_gone: Callable[[TopicPartition], bool],
        on_done: Callable[[], None],
    ) -> None:
        self.transactional_id = transaction.transactional_id
        self.left = dict.fromkeys(sorted(transaction.partitions))
        self._marker = Marker(
            transaction.producer_id,
            transaction.producer_epoch,
            coordinator_epoch,
            transaction.state is TransactionState.PREPARE_COMMIT,
            transaction.client_version,
        )
        self._writer = writer
        self._timers = timers
        self._is_gone = is_gone
        self._on_done = on_done
        self._is_stopped = False

    def stop(self) -> None:
        """Send no more; `on_done` is not called."""
        self._is_stopped = True

    def advance(self) -> None:
        """Write missing markers, as many as may be written at once."""
        if self._is_stopped:
            return
        for topic_partition in [
            topic_partition for topic_partition in self.left if self._is_gone(topic_partition)
        ]:
            _log.info("no marker for a deleted partition transactional_id=%r partition=%s-%d",
                      self.transactional_id, *topic_partition)  # fmt: skip
            del self.left[topic_partition]
        if not self.left:
            self._finish()
            return
        reply: Reply[_Codes] = self._writer.write(
            self._marker, tuple(islice(self.left, MARKERS_AT_ONCE))
        )
        if not isinstance(reply, asyncio.Future):
            self._take(reply)
        elif reply.done():
            self._take(reply.result())
        else:
            reply.add_done_callback(self._answered)

    def _answered(self, reply: "asyncio.Future[_Codes]") -> None:
        if not self._is_stopped:
            self._take(reply.result())

    def _take(self, codes: _Codes) -> None:
        has_failed = False
        for topic_partition, code in codes.items():
            del self.left[topic_partition]
            if code in _DONE:
                continue
            if code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                _log.warning("fenced by a later coordinator transactional_id=%r partition=%s-%d",
                             self.transactional_id, *topic_partition)  # fmt: skip
                self.stop()
                return
            # To the end of the line, so that the others are not kept waiting.
            self.left[topic_partition] = None
            has_failed = True
            _log.info("marker not written transactional_id=%r partition=%s-%d error=%s",
                      self.transactional_id, *topic_partition, code.name)  # fmt: skip
        if not self.left:
            self._finish()
        elif has_failed:
            self._timers.set(("markers", self.transactional_id), RETRY_MS, self.advance)
        else:
            asyncio.get_running_loop().call_soon(self.advance)

    def _finish(self) -> None:
        self._is_stopped = True
        self._on_done()
