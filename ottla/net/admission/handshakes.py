"""The order of TLS handshakes: a few begin in each turn of the event loop. Pure.

A handshake costs the server a signature, which takes longer than a hundred small requests. Without
bounds, five hundred hellos that arrive at once stop the loop for most of a second. A connection
therefore waits without TLS until its hello is complete, and then for its turn. Addresses take
turns, and only so many handshakes are unfinished at a time. If all of these are taken, the next one
takes the place of the oldest from the address that has the most, unless its own would then have
more. In that case it waits until one is complete, has failed, or has taken too long.

Time is in seconds of the loop's clock. Java's broker has the same work on its network threads.
"""

from collections import Counter, OrderedDict, deque
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K")


class Pace(NamedTuple):
    """The options `ssl.handshakes.*`, and the time limits in seconds."""

    at_once: int = 2
    unfinished_max: int = 64
    # From the connection to the end of the hello.
    hello_seconds: float = 10.0
    # An unfinished handshake that began earlier than this is given up if others wait.
    patience_seconds: float = 2.0


class Turn(NamedTuple, Generic[K]):
    """The handshakes that begin in a turn, and those that are given up for them."""

    begun: list[K]
    given_up: list[K]


class HandshakeOrder(Generic[K]):
    """The connections of one listener between TCP and TLS; keys are the caller's."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        # Without a complete hello, by the time of their arrival.
        self._silent: OrderedDict[K, float] = OrderedDict()
        # With a complete hello, by address; the addresses take turns.
        self._waiting: OrderedDict[str, deque[K]] = OrderedDict()
        self._hosts: dict[K, str] = {}
        # Begun, by the time of their beginning; and their number by address.
        self._unfinished: OrderedDict[K, float] = OrderedDict()
        self._unfinished_by_host: Counter[str] = Counter()
        self.waiting_count = 0
        # Handshakes that began, hellos that did not come, and handshakes given up for others.
        self.begun_count = self.silent_count = self.abandoned_count = 0

    @property
    def is_empty(self) -> bool:
        """True if no connection is between TCP and TLS."""
        return not self._hosts

    def arrive(self, key: K, host: str, now: float) -> None:
        """Wait for the hello of a connection."""
        self._hosts[key] = host
        self._silent[key] = now

    def has_hello(self, key: K) -> None:
        """Note that the hello of a connection is complete: it waits for its turn."""
        del self._silent[key]
        self._waiting.setdefault(self._hosts[key], deque()).append(key)
        self.waiting_count += 1

    def leave(self, key: K) -> None:
        """Remove a connection: its handshake is complete, has failed, or will not begin."""
        host = self._hosts.pop(key, None)
        if host is None:
            return
        if self._unfinished.pop(key, None) is not None:
            self._unfinished_by_host[host] -= 1
            if not self._unfinished_by_host[host]:
                del self._unfinished_by_host[host]
        self._silent.pop(key, None)
        waiting = self._waiting.get(host)
        if waiting is not None and key in waiting:
            waiting.remove(key)
            self._count_taken(host, waiting)

    def take_turn(self, now: float) -> Turn[K]:
        """Return a few connections whose handshakes begin now, and those that have to end."""
        turn: Turn[K] = Turn([], [])
        for host in list(self._waiting):
            if len(turn.begun) >= self.pace.at_once:
                break
            if len(self._unfinished) >= self.pace.unfinished_max:
                victim = self._oldest_of_a_crowd(host)
                if victim is None:
                    continue
                self.leave(victim)
                turn.given_up.append(victim)
            turn.begun.append(self._take(host, now))
        while self._waiting and len(turn.begun) < self.pace.at_once and self._has_room:
            turn.begun.append(self._take(next(iter(self._waiting)), now))
        self.begun_count += len(turn.begun)
        self.abandoned_count += len(turn.given_up)
        return turn

    @property
    def _has_room(self) -> bool:
        return len(self._unfinished) < self.pace.unfinished_max

    def _take(self, host: str, now: float) -> K:
        waiting = self._waiting[host]
        key = waiting.popleft()
        self._waiting.move_to_end(host)
        self._count_taken(host, waiting)
        self._unfinished[key] = now
        self._unfinished_by_host[host] += 1
        return key

    def _oldest_of_a_crowd(self, newcomer_host: str) -> K | None:
        """Return the oldest handshake of the address that has the most, if that is more than the
        newcomer's would then have.
        """
        ((host, count),) = self._unfinished_by_host.most_common(1)
        if count <= self._unfinished_by_host[newcomer_host] + 1:
            return None
        return next(key for key in self._unfinished if self._hosts[key] == host)

    def overdue(self, now: float) -> list[K]:
        """Return the connections to close, and remove them.

        Their hello did not come in time, or their handshake makes no progress and others wait.
        """
        overdue: list[K] = []
        for key, arrived_at in self._silent.items():
            if now - arrived_at < self.pace.hello_seconds:
                break
            overdue.append(key)
        self.silent_count += len(overdue)
        missing = self.waiting_count - (self.pace.unfinished_max - len(self._unfinished))
        for key, begun_at in self._unfinished.items():
            if missing <= 0 or now - begun_at < self.pace.patience_seconds:
                break
            overdue.append(key)
            self.abandoned_count += 1
            missing -= 1
        for key in overdue:
            self.leave(key)
        return overdue

    def _count_taken(self, host: str, waiting: "deque[K]") -> None:
        self.waiting_count -= 1
        if not waiting:
            del self._waiting[host]
