"""Logins that have failed, and how long the next ones wait: for each user, address, and pair. Pure.

After a few failures of a user from an address, each further attempt of that pair has to wait for
its turn, and the turns become rarer: twice as rare after each failure. Failures of many users from
one address slow the whole address down, in the same way but later, so that one client with a wrong
password does not slow down others behind the same address. Failures from many addresses delay each
attempt of their user by a second at most, so that strangers cannot lock a user out.

The password is checked after the wait. So a right password is no faster than a wrong one, and
connections that try in parallel are no faster than one. Failures are forgotten by half each minute.
Time is in seconds of a monotonic clock. Kafka delays the response to each failure by
connection.failed.authentication.delay.ms, whatever their number.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

_HALF_LIFE_SECONDS = 60.0
# How many users, addresses and pairs are remembered, of each kind.
ENTRIES_MAX = 10_000
# Of a user or an address, so many times as many failures as of a pair are free.
_SHARED_SCALE = 10
# Of a pair, so many times the free failures count for its user and for its address.
_SHARED_PART = 2
_USER_SECONDS_MAX = 1.0
# Failures beyond this many doublings of the delay are not counted, so that it ends soon after them.
_DOUBLINGS_MAX = 10


class AttemptLimits(NamedTuple):
    """The options `connection.failed.authentication.*`: delays in seconds, and free failures."""

    first_seconds: float = 0.1
    seconds_max: float = 10.0
    free_count: int = 5


class _Record:
    """The failures of one user, address or pair, as of a time, and its next turn."""

    __slots__ = ("at", "failures", "next_turn")

    def __init__(self, now: float) -> None:
        self.failures = 0.0
        self.at = self.next_turn = now

    def decay(self, now: float) -> None:
        """Forget failures as time passes."""
        self.failures *= 0.5 ** ((now - self.at) / _HALF_LIFE_SECONDS)
        self.at = now


class _Table(Generic[K]):
    """The records of one kind; `scale` is how many times more failures than of a pair are free.

    The record without an attempt for the longest time is forgotten first.
    """

    def __init__(self, limits: AttemptLimits, scale: int) -> None:
        self.records: OrderedDict[K, _Record] = OrderedDict()
        self._limits = limits
        self._scale = scale

    def find(self, key: K, now: float) -> _Record:
        """Return the record of a key as of now."""
        record = self.records.get(key)
        if record is None:
            if len(self.records) >= ENTRIES_MAX:
                self.records.popitem(last=False)
            record = self.records[key] = _Record(now)
        self.records.move_to_end(key)
        record.decay(now)
        return record

    def add(self, record: _Record) -> None:
        """Count a failure, up to the number at which the turns are as rare as they can be."""
        most = self._scale * (self._limits.free_count + _DOUBLINGS_MAX)
        record.failures = min(record.failures + 1, most)

    def interval(self, record: _Record) -> float:
        """Return the seconds from one turn to the next; 0 while the failures are free."""
        limits, scale = self._limits, self._scale
        excess = record.failures - scale * limits.free_count
        if excess <= 0:
            return 0.0
        return float(min(limits.first_seconds * 2.0 ** (excess / scale), limits.seconds_max))


class Attempts:
    """The failures that a broker remembers, and the delays that follow.

    An attempt counts as failed until it has succeeded.
    """

    def __init__(self, limits: AttemptLimits) -> None:
        self.limits = limits
        self._pairs: _Table[tuple[str, str]] = _Table(limits, 1)
        self._hosts: _Table[str] = _Table(limits, _SHARED_SCALE)
        self._users: _Table[str] = _Table(limits, _SHARED_SCALE)
        # Attempts that had to wait, and attempts that were refused unseen.
        self.delayed_count = self.refused_count = 0

    @property
    def entries_count(self) -> int:
        """The number of users, addresses and pairs that are remembered."""
        return sum(len(table.records) for table in (self._pairs, self._hosts, self._users))

    def ask(self, host: str, user: str, now: float) -> float | None:
        """Return the seconds until an attempt may be checked; None if it is refused unseen."""
        pair = self._pairs.find((host, user), now)
        address, own = self._hosts.find(host, now), self._users.find(user, now)
        wait = max(0.0, pair.next_turn - now, address.next_turn - now)
        wait = max(wait, min(self._users.interval(own), _USER_SECONDS_MAX))
        if wait > self.limits.seconds_max:
            self.refused_count += 1
            return None
        self._pairs.add(pair)
        if self._is_shared(pair):
            self._hosts.add(address)
            self._users.add(own)
        pair.next_turn = now + wait + self._pairs.interval(pair)
        between = self._hosts.interval(address)
        if between:
            address.next_turn = max(address.next_turn, now) + between
        self.delayed_count += wait > 0
        return wait

    def succeeded(self, host: str, user: str, now: float) -> None:
        """Take back the failure of an attempt, and forget others of the pair: it has the password."""
        pair = self._pairs.records.pop((host, user), None)
        if pair is None or not self._is_shared(pair):
            return
        for record in (self._hosts.find(host, now), self._users.find(user, now)):
            record.failures = max(record.failures - 1, 0.0)

    def _is_shared(self, pair: _Record) -> bool:
        """Return True if a failure counts for the address and the user, too.

        Later ones do not: the pair has been slowed down, and says nothing about others.
        """
        return pair.failures <= _SHARED_PART * self.limits.free_count
