"""Dynamic configuration, written by a broker that is not the controller.

As in Apache Kafka with ZooKeeper, every broker writes configuration itself: the version of the node
protects concurrent changes, and a notification informs all brokers. Follows ConfigAdminManager.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.zk.port import (
    BadVersion,
    ConnectionSuspended,
    Coordination,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Result,
    SessionLost,
)
from ottla.controller.config_changes import ConfigChanges
from ottla.controller.planning.requests import ConfigRequest, EntityResult
from ottla.controller.term_context import ATTEMPTS, Dependencies


class PlainWriter:
    """Writes to the tree without the fence of a controller's term."""

    def __init__(self, session: Callable[[], Coordination]) -> None:
        self._session = session

    @property
    def session(self) -> Coordination:
        """The broker's current session."""
        return self._session()

    async def write(self, operations: Sequence[Operation]) -> list[Result]:
        """Perform all operations or none."""
        return await self.session.multi(operations)

    async def remove(self, paths: Iterable[str]) -> None:
        """Delete nodes one by one; a node that does not exist is skipped."""
        for path in paths:
            try:
                await self.write([Delete(path)])
            except NoNode:
                continue


class ConfigWriter:
    """Changes settings for a broker; `session` returns its current session."""

    def __init__(self, session: Callable[[], Coordination], dependencies: Dependencies) -> None:
        self._tasks = dependencies.tasks
        self._changes = ConfigChanges(
            PlainWriter(session),
            dependencies.options,
            lambda: dependencies.local_image().topics,
            self._expired,
        )

    async def alter(
        self, requests: Sequence[ConfigRequest], validate_only: bool
    ) -> list[EntityResult]:
        """Store settings; the result has an EntityResult for each entity."""
        return [
            EntityResult(request.entity, await self._alter(request, validate_only))
            for request in requests
        ]

    async def _alter(self, request: ConfigRequest, validate_only: bool) -> ApiError | None:
        for _ in range(ATTEMPTS):
            try:
                await self._changes.alter(request, validate_only)
            except ApiError as error:
                return error.with_traceback(None)
            except (BadVersion, NodeExists, NoNode):
                # Another broker changed the entity at the same time.
                continue
            except (ConnectionSuspended, SessionLost):
                break
            return None
        return ApiError(ErrorCode.REQUEST_TIMED_OUT, "The settings cannot be written now.")

    def _expired(self, paths: Sequence[str]) -> None:
        self._tasks.supervise(partial(self._expire, paths), "removal of change notifications")

    async def _expire(self, paths: Sequence[str]) -> None:
        try:
            await self._changes.expire(paths)
        except (ConnectionSuspended, SessionLost):
            # The next controller removes old notifications when its term begins.
            return

    def close(self) -> None:
        """Stop waiting for the age at which notifications are removed."""
        self._changes.close()
