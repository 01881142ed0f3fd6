"""What a consumer reports in the log while it has no connection, or no partitions."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ottla.client.reach.connection_watch import ConnectionWatch
from ottla.client.reach.unassigned import AssignmentWatch, look_up_reason


class Explanations:
    """Watches the connection and the assignment of one consumer with these options.

    librdkafka calls `on_error`.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.connection = ConnectionWatch("consumer", options)
        self.on_error = self.connection.pending.append
        self._assignment = AssignmentWatch(partial(look_up_reason, options))
        self._subscription: tuple[str, ...] = ()

    def check(
        self,
        subscription: tuple[str, ...],
        assignment: Collection[Any],
        member_id: Callable[[], str | None],
    ) -> None:
        """Let the log have a reason that is known, or due; called while no records arrive.

        `member_id` returns the consumer's id in its group.
        """
        if self.connection.pending:
            self.connection.take_reports()
        if subscription is not self._subscription:
            self._subscription = subscription
            self._assignment.begin(subscription)
        self._assignment.check(assignment, member_id)
