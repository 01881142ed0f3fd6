"""Waiting until records are as safe as the producer requires.

Follows kafka.cluster.Partition.checkEnoughReplicasReachOffset.
"""

import asyncio
from functools import partial
from typing import Protocol

from ottla.base.errors import ErrorCode
from ottla.replication.delayed import Delayed, Watched
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
