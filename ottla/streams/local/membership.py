"""A worker's membership in the application's group, over the thread that joins and sends
heartbeats.
"""

import time
from collections.abc import Sequence

from ottla.base.errors import ApiError
from ottla.client.errors import ClientError, TimedOut
from ottla.client.group.background import Event, Joined
from ottla.client.group.identities import Identity
from ottla.client.group.member import GroupSettings
from ottla.streams.local.assignment.assignor import TaskAssignor
from ottla.streams.local.assignment.placement import MemberPlacement, TaskMember
from ottla.streams.local.ports import EnginePorts
from ottla.streams.local.running import Offsets
from ottla.streams.model.errors import TaskMigrated

_COMMIT_S = 60.0
_STEP_S = 0.5


class GroupMembership:
    """One member; `is_joining` from a join until its assignment. For one thread."""

    def __init__(
        self,
        ports: EnginePorts,
        settings: GroupSettings,
        topics: Sequence[str],
        assignor: TaskAssignor,
    ) -> None:
        self.is_joining = False
        self.identity = Identity()
        self._settings = settings
        self._topics = tuple(topics)
        self._assignor = assignor
        self._thread = ports.open_member(settings, [assignor])

    @property
    def group_id(self) -> str:
        """The id of the group."""
        return self._settings.group_id

    @property
    def placement(self) -> MemberPlacement:
        """The replicas of the last assignment."""
        return self._assignor.received_placement

    def join(self, member: TaskMember) -> None:
        """Join, or join again, as a member with these tasks; `Joined` or `Failed` follows.

        `Lost` follows if the group removes the member before it has an assignment.
        """
        self._assignor.member = member
        self.is_joining = True
        self._thread.join(self._topics, is_owner=bool(member.owned))

    def events(self) -> list[Event]:
        """Return what has happened since the last call, and note that the worker is alive."""
        self._thread.polled()
        events: list[Event] = []
        while self._thread.events:
            event = self._thread.events.popleft()
            if isinstance(event, Joined):
                if event.stay != self._thread.stay:
                    continue
                self.is_joining = False
                instance_id = self._settings.instance_id
                self.identity = Identity(event.member_id, event.generation, instance_id)
            events.append(event)
        return events

    def commit(self, offsets: Offsets) -> None:
        """Commit offsets as a member. Raises TaskMigrated if it is none any more."""
        done = self._thread.commit(offsets)
        deadline = time.monotonic() + _COMMIT_S
        while True:
            try:
                code = done.result(_STEP_S)
                break
            except TimeoutError:
                self._thread.polled()
                if time.monotonic() > deadline:
                    raise TimedOut(f"offsets were not committed within {_COMMIT_S:g} s") from None
            except (ApiError, ClientError) as error:
                raise TaskMigrated(f"offsets were not committed: {error}") from error
        if code:
            raise TaskMigrated(f"offsets were not committed: error {code}")

    def leave(self, reason: str) -> None:
        """Leave the group."""
        self._thread.leave(reason)
        self._thread.events.clear()
        self.is_joining = False

    def close(self) -> None:
        """End the thread."""
        self._thread.close()
