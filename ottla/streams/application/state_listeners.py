"""Listeners of restores and of standby replicas, as in Kafka Streams (KIP-869, KIP-988).

The workers call them in their threads. As in Kafka, an error of a listener ends the worker.
"""

import enum

from ottla.client.records import TopicPartition
from ottla.streams.model.spelling import SnakeCase


class StateRestoreListener(SnakeCase):
    """Follows the restores of stores from their changelogs; a subclass overrides what it needs."""

    def on_restore_start(
        self, partition: TopicPartition, store_name: str, start_offset: int, end_offset: int
    ) -> None:
        """Called when a restore begins at an offset; it ends before `end_offset`."""

    def on_batch_restored(
        self, partition: TopicPartition, store_name: str, batch_end_offset: int, count: int
    ) -> None:
        """Called when `count` records, up to and with an offset, were restored."""

    def on_restore_end(self, partition: TopicPartition, store_name: str, total: int) -> None:
        """Called when the restore is complete; `total` is the number of its records."""

    def on_restore_suspended(self, partition: TopicPartition, store_name: str, total: int) -> None:
        """Called when a task is given up before its restore is complete."""


class SuspendReason(enum.Enum):
    """The reason why a standby replica ends."""

    MIGRATED = "the task or its replica has moved to another instance, or this one is being closed"
    PROMOTED = "the replica becomes the active task"


class StandbyUpdateListener(SnakeCase):
    """Follows standby and warm-up replicas; a subclass overrides what it needs."""

    def on_update_start(
        self, partition: TopicPartition, store_name: str, start_offset: int
    ) -> None:
        """Called when a replica begins to follow its changelog at an offset."""

    def on_batch_loaded(
        self,
        partition: TopicPartition,
        store_name: str,
        task_id: str,
        batch_end_offset: int,
        batch_size: int,
        current_end_offset: int,
    ) -> None:
        """Called when `batch_size` records, up to and with an offset, were read.

        `current_end_offset` is the end of the changelog in the broker's last response; -1 before.
        """

    def on_update_suspended(
        self,
        partition: TopicPartition,
        store_name: str,
        store_offset: int,
        current_end_offset: int,
        reason: SuspendReason,
    ) -> None:
        """Called when the replica ends; `store_offset` is the next one that it would have read."""
