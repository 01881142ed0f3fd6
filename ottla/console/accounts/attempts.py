"""The limit of failed logins: after a few, a user name has to wait at an address, longer each time.

The first five failures are free; the sixth costs a wait of 5 seconds, which doubles up to 15
minutes. A success, or an hour without failures, clears the count.

The wait is for a name at an address. A name alone never waits: everyone who can reach the console
could lock its user out otherwise. An address that tries many names waits as a whole after
twenty-five failures, half a minute at most, because all users behind one proxy may have it.
"""

from collections import OrderedDict
from typing import NamedTuple

FREE_FAILURES = 5
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 900.0
FORGET_S = 3600.0
ADDRESS_FREE_FAILURES = 25
ADDRESS_LONGEST_WAIT_S = 30.0
_ANY_USER = None
# A flood of invented names must not fill the memory: the oldest entries are forgotten.
_MAX_ENTRIES = 10_000

_Key = tuple[str, str | None]


class _Failures(NamedTuple):
    number: int
    at: float


class LoginAttempts:
    """Failed logins by address, and by address and user name. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._failures: OrderedDict[_Key, _Failures] = OrderedDict()
        self._addresses: OrderedDict[_Key, _Failures] = OrderedDict()

    @property
    def entries_count(self) -> int:
        """The number of addresses, and of users at addresses, that are remembered."""
        return len(self._failures) + len(self._addresses)

    def wait_s(self, address: str, user: str, now: float) -> float:
        """Return how long this login has to wait; 0 if it may try now."""
        of_user = self._failures.get((address, user))
        of_address = self._addresses.get((address, _ANY_USER))
        return max(
            _wait(of_user, FREE_FAILURES, LONGEST_WAIT_S, now),
            _wait(of_address, ADDRESS_FREE_FAILURES, ADDRESS_LONGEST_WAIT_S, now),
        )

    def failed(self, address: str, user: str, now: float) -> None:
        """Count a failure."""
        _count(self._failures, (address, user), now)
        _count(self._addresses, (address, _ANY_USER), now)

    def succeeded(self, address: str, user: str) -> None:
        """Forget the failures of a user at an address, and as many of the address."""
        own = self._failures.pop((address, user), None)
        key = (address, _ANY_USER)
        of_address = self._addresses.pop(key, None)
        if own is not None and of_address is not None and of_address.number > own.number:
            # A user with an account cannot clear the failures of the names that they try.
            self._addresses[key] = of_address._replace(number=of_address.number - own.number)


def _count(table: "OrderedDict[_Key, _Failures]", key: _Key, now: float) -> None:
    failures = table.pop(key, None)
    count = 0 if failures is None or now - failures.at > FORGET_S else failures.number
    table[key] = _Failures(count + 1, now)
    while len(table) > _MAX_ENTRIES:
        table.popitem(last=False)


def _wait(failures: _Failures | None, free: int, longest_s: float, now: float) -> float:
    if failures is None or failures.number < free or now - failures.at > FORGET_S:
        return 0.0
    doublings = min(failures.number - free, 10)
    return max(0.0, failures.at + min(longest_s, FIRST_WAIT_S * 2.0**doublings) - now)
