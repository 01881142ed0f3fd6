"""Waiting until records are as safe as the producer requires.

Follows kafka.cluster.Partition.checkEnoughReplicasReachOffset.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from ottla.base.errors import ErrorCode
from ottla.replication.delayed import PRODUCE, Delayed, Watched
from ottla.replication.isr import IsrMachine

ACKS_ALL = -1


class Written(Watched, Protocol):
    """The parts of a partition that decide whether its records are safe."""

    is_offline: bool
    isr: IsrMachine | None
    leader_epoch: int
    leading_since_epoch: int
    min_insync_replicas: int

    def is_acknowledged(self, acks: int, offset: int) -> bool:
        """Return True if everything below `offset` is as safe as `acks` requires."""
        ...


def wait(
    partition: Written, delayed: Delayed, acks: int, offset: int, seconds: float | None
) -> "asyncio.Future[ErrorCode]":
    """Return a future: NONE when everything below `offset` is safe, otherwise the error.

    This broker must lead without interruption: another leader may not have the records. A new epoch
    of the same leader, e.g. without a dead follower, changes nothing. REQUEST_TIMED_OUT after
    `seconds`; None means no deadline.
    """
    return delayed.wait(
        (partition,),
        check=partial(_check, partition, acks, offset, partition.leader_epoch),
        expire=lambda: ErrorCode.REQUEST_TIMED_OUT,
        seconds=seconds,
    )


class AwaitedAcknowledgement:
    """The same wait without a future: `respond` is called with the result (implements Waiter)."""

    __slots__ = (
        "_acks",
        "_delayed",
        "_is_done",
        "_is_noted",
        "_leader_epoch",
        "_offset",
        "_partition",
        "_respond",
        "_timer",
    )

    def __init__(
        self,
        partition: Written,
        delayed: Delayed,
        acks: int,
        offset: int,
        seconds: float,
        respond: Callable[[ErrorCode], None],
    ) -> None:
        self._partition = partition
        self._delayed = delayed
        self._acks = acks
        self._offset = offset
        self._leader_epoch = partition.leader_epoch
        self._respond = respond
        self._is_done = self._is_noted = False
        partition.waiters[self] = None
        self._timer = delayed.enter(PRODUCE, seconds, self.finish)

    def note(self, changed: Watched) -> None:
        """Remember that the partition has changed."""
        self._is_noted = True

    def look(self) -> None:
        """Respond if the records are safe, or cannot become so."""
        if self._is_done or not self._is_noted:
            return
        self._is_noted = False
        code = _check(self._partition, self._acks, self._offset, self._leader_epoch)
        if code is not None:
            self._end(code)

    def finish(self) -> None:
        """Respond that the time is over."""
        if not self._is_done:
            self._end(ErrorCode.REQUEST_TIMED_OUT)

    def _end(self, code: ErrorCode) -> None:
        self._is_done = True
        self._partition.waiters.pop(self, None)
        self._delayed.leave(PRODUCE, self._timer)
        self._respond(code)


def _check(partition: Written, acks: int, offset: int, leader_epoch: int) -> ErrorCode | None:
    if partition.is_offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition.isr is None or leader_epoch < partition.leading_since_epoch:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not partition.is_acknowledged(acks, offset):
        return None
    if acks == ACKS_ALL and not partition.isr.has_enough_replicas(partition.min_insync_replicas):
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE
