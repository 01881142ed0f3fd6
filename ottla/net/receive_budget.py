"""The memory of unfinished requests of all connections together (queued.max.request.bytes).

A size prefix costs its sender nothing, so it reserves little memory: a connection is charged for
the buffer that it has, and that buffer grows as bytes arrive. If the budget is exhausted, growth
waits, and the slowest requests are closed first (`Endpoint`). Kafka's SimpleMemoryPool charges the
announced size.

Frames that wait for growth could wait for each other. Therefore some may grow although the budget
is exhausted: while nearly all of it belongs to waiting frames and to stalled ones, whose senders
have stopped, up to twice the budget. Beyond that, one frame at a time may grow, while all others
wait. The frame that lacks the fewest bytes grows first.
"""

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush

from ottla.net.buffers import room_bytes
from ottla.net.limits import Budget

# While memory is plentiful, a frame up to this size gets its whole buffer at once; beyond it, the
# buffer doubles.
TRUSTED_BYTES = 2 * 1024 * 1024
# Fewer bytes than this do not count as progress of a frame.
_PROGRESS_BYTES = 64 * 1024


class _State(IntEnum):
    """The state of a connection's unhandled bytes."""

    ACTIVE = 0
    # Not read: the frame waits for more memory, or for an earlier response.
    PARKED = 1
    # The sender has stopped in the middle of a frame.
    STALLED = 2


class _HostShare:
    """The memory of one client address, and its connections that wait for more."""

    __slots__ = (
        "_line",
        "connections_count",
        "held_bytes",
        "host",
        "waiting_count",
    )

    def __init__(self, host: str) -> None:
        self.host = host
        self.connections_count = self.waiting_count = 0
        self.held_bytes = 0
        # A heap by missing bytes; it may contain entries of connections that no longer wait.
        self._line: list[tuple[int, int, ReceiveMemory]] = []

    def enqueue(self, missing_bytes: int, number: int, memory: "ReceiveMemory") -> None:
        """Make a connection wait until it is granted memory or `is_waiting` is false."""
        self.waiting_count += 1
        heappush(self._line, (missing_bytes, number, memory))

    def first_waiting(self) -> "ReceiveMemory | None":
        """Return the connection whose frame lacks the fewest bytes: it releases its memory first."""
        while self._line:
            _, number, memory = self._line[0]
            if memory.ticket == number:
                return memory
            heappop(self._line)
        return None


def _nothing_granted() -> None:
    raise AssertionError("the connection has ended")


class ReceiveMemory:
    """The memory that one connection holds for received bytes that have not been handled.

    `on_grant` is called when `grow` had to wait and the memory has been granted.
    """

    __slots__ = (
        "_budget",
        "_on_grant",
        "_seen_at",
        "_seen_bytes",
        "_share",
        "_state",
        "_wanted_bytes",
        "held_bytes",
        "ticket",
    )

    def __init__(self, budget: "ReceiveBudget", host: str, on_grant: Callable[[], None]) -> None:
        self._budget = budget
        self._on_grant = on_grant
        self._share = budget.join(host)
        self._state = _State.ACTIVE
        self._wanted_bytes = 0
        self._seen_at = self._seen_bytes = 0.0
        # The size of the connection's private buffer, or of the part of a frame without one.
        self.held_bytes = 0
        # The number in the queue; 0 if it does not wait.
        self.ticket = 0

    @property
    def is_waiting(self) -> bool:
        """True if the connection may not be read until there is memory for its frame."""
        return self.ticket > 0

    def begin(self, filled_bytes: int, wanted_bytes: int) -> int:
        """Hold a buffer for `filled_bytes` of a frame of `wanted_bytes`; return its size.

        Received bytes are in memory already and are always granted.
        """
        budget, share = self._budget, self._share
        size_bytes = room_bytes(filled_bytes)
        self._wanted_bytes = wanted_bytes
        self._seen_at = 0.0
        if filled_bytes < wanted_bytes:
            trusted = room_bytes(min(wanted_bytes, TRUSTED_BYTES))
            if budget.has_plenty(share, trusted):
                size_bytes = max(size_bytes, trusted)
        self._hold(size_bytes, _State.ACTIVE if filled_bytes < wanted_bytes else _State.PARKED)
        return size_bytes

    def keep(self, filled_bytes: int) -> None:
        """Hold the first bytes of a frame, without a buffer for the rest of it."""
        self._seen_at = 0.0
        self.held_bytes = filled_bytes
        self._share.held_bytes += filled_bytes
        self._budget.held_bytes += filled_bytes

    def grow(self) -> bool:
        """Double the held memory, up to the frame's size; return False if that has to wait."""
        if self._budget.may_grow(self._share):
            self._hold(self._grown_bytes(), _State.ACTIVE)
            return True
        self.ticket = self._budget.next_ticket()
        missing_bytes = room_bytes(self._wanted_bytes) - self.held_bytes
        self._share.enqueue(missing_bytes, self.ticket, self)
        self.park()
        self._budget.wait(self._share)
        return False

    def park(self) -> None:
        """Note that the connection is not being read, because its frame waits."""
        self._hold(self.held_bytes, _State.PARKED)

    def stall(self) -> None:
        """Note that the sender has stopped in the middle of a frame.

        Counts until the memory changes: a frame that continues until then uses what it has.
        """
        if self._state == _State.ACTIVE:
            self._hold(self.held_bytes, _State.STALLED)

    def release(self) -> None:
        """Release all memory and stop waiting."""
        held_bytes, self._wanted_bytes = self.held_bytes, 0
        if self.ticket:
            self._stop_waiting()
        if self._state:
            self._hold(0, _State.ACTIVE)
        elif held_bytes:
            self.held_bytes = 0
            self._share.held_bytes -= held_bytes
            self._budget.give_back(held_bytes)

    def leave(self) -> None:
        """Release everything at the end of the connection."""
        self.release()
        # Its owner refers to this object, too: only the garbage collector would free them.
        self._on_grant = _nothing_granted
        self._budget.leave(self._share)

    def granted(self) -> None:
        """Take the memory that `grow` waits for (called by the budget).

        Takes all that the frame needs if that is little; otherwise other frames would overtake it
        before its next growth.
        """
        self._stop_waiting()
        size_bytes = room_bytes(self._wanted_bytes)
        if 4 * (size_bytes - self.held_bytes) > self._budget.limit_bytes:
            size_bytes = self._grown_bytes()
        self._hold(size_bytes, _State.ACTIVE)
        self._seen_at = 0.0
        self._on_grant()

    def silent_seconds(self, now: float, active_at: float, filled_bytes: int) -> float:
        """Return for how many seconds the frame has made no significant progress."""
        if not self._seen_at:
            self._seen_at, self._seen_bytes = active_at, filled_bytes
        elif filled_bytes - self._seen_bytes >= _PROGRESS_BYTES:
            self._seen_at, self._seen_bytes = now, filled_bytes
        return now - self._seen_at

    def _grown_bytes(self) -> int:
        return min(2 * self.held_bytes, room_bytes(self._wanted_bytes))

    def _stop_waiting(self) -> None:
        self.ticket = 0
        self._share.waiting_count -= 1

    def _hold(self, size_bytes: int, state: _State) -> None:
        budget = self._budget
        former_bytes, former = self.held_bytes, self._state
        self.held_bytes, self._state = size_bytes, state
        more = size_bytes - former_bytes
        self._share.held_bytes += more
        if former:
            budget.count_idle(former, -former_bytes)
        if state:
            budget.count_idle(state, size_bytes)
        if more > 0:
            budget.hold(more)
        elif more or former or state:
            budget.give_back(-more)


class ReceiveBudget(Budget):
    """The memory of all connections of a broker; handlers also hold some of it (`hold`)."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        # Above this, reads are short: small requests that arrive whole need no further memory.
        self.short_read_bytes = limit_bytes + limit_bytes // 2
        # One address leaves a quarter to the others.
        self.host_bytes_max = limit_bytes - limit_bytes // 4
        # The parts of the held bytes that belong to frames in the two other states than ACTIVE.
        self.parked_bytes = self.stalled_bytes = 0
        self._shares: dict[str, _HostShare] = {}
        self._waiting_shares: dict[_HostShare, None] = {}
        self._last_ticket = 0
        self._is_granting = False

    @property
    def has_waiting(self) -> bool:
        """True if a connection waits for memory."""
        return any(share.waiting_count for share in self._waiting_shares)

    def join(self, host: str) -> _HostShare:
        """Count a connection from an address."""
        share = self._shares.get(host)
        if share is None:
            share = self._shares[host] = _HostShare(host)
        share.connections_count += 1
        return share

    def leave(self, share: _HostShare) -> None:
        """Remove a connection from the count."""
        share.connections_count -= 1
        if not share.connections_count:
            del self._shares[share.host]
            self._waiting_shares.pop(share, None)

    def count_idle(self, state: _State, more_bytes: int) -> None:
        """Count bytes of frames that are parked or stalled."""
        if state == _State.PARKED:
            self.parked_bytes += more_bytes
        else:
            self.stalled_bytes += more_bytes

    def reads_short(self, host: str) -> bool:
        """Return True if reads of an address must be short because it, or all, hold too much."""
        if self.held_bytes >= self.short_read_bytes:
            return True
        share = self._shares.get(host)
        return share is not None and share.held_bytes >= self.host_bytes_max

    def has_plenty(self, share: _HostShare, more_bytes: int) -> bool:
        """Return True if `more_bytes` may be held for a frame that has only been announced."""
        limit_bytes = self.limit_bytes
        return (
            2 * (self.held_bytes + more_bytes) <= limit_bytes
            and 4 * (share.held_bytes + more_bytes) <= limit_bytes
        )

    def may_grow(self, share: _HostShare) -> bool:
        """Return True if a frame from an address may grow now."""
        limit_bytes, held_bytes = self.limit_bytes, self.held_bytes
        has_share = share.held_bytes < self.host_bytes_max
        if held_bytes < limit_bytes and has_share:
            return True
        active_bytes = held_bytes - self.parked_bytes
        if not active_bytes:
            # Only waiting frames are left.
            return True
        active_bytes -= self.stalled_bytes
        # Of the memory beyond the budget, an address that holds its share gets half.
        if has_share:
            return held_bytes < 2 * limit_bytes and active_bytes < limit_bytes // 4
        return held_bytes < self.short_read_bytes and active_bytes < limit_bytes // 8

    def next_ticket(self) -> int:
        """Return the next number in the queue."""
        self._last_ticket += 1
        return self._last_ticket

    def wait(self, share: _HostShare) -> None:
        """Grant memory to the waiting connections of an address as soon as there is some."""
        self._waiting_shares[share] = None
        self._grant()

    def give_back(self, size_bytes: int) -> None:
        """Release bytes and grant them to waiting connections."""
        super().give_back(size_bytes)
        if self._waiting_shares:
            self._grant()

    def _grant(self) -> None:
        """Grant memory to waiting connections, to one of each address in turn."""
        if self._is_granting:
            return
        self._is_granting = True
        try:
            while any([self._grant_one(share) for share in list(self._waiting_shares)]):
                continue
        finally:
            self._is_granting = False

    def _grant_one(self, share: _HostShare) -> bool:
        first = share.first_waiting()
        if first is None:
            self._waiting_shares.pop(share, None)
            return False
        if not self.may_grow(share):
            return False
        first.granted()
        return True
