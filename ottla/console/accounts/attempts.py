"""The limit of failed logins: after a few, an address and a user name have to wait, longer each
time.

The first five failures are free; the sixth costs a wait of 5 seconds, which doubles up to 15
minutes. A success, or an hour without failures, clears the count. Waits of addresses and of names
are separate: one address cannot try many names, and many addresses cannot try one name.
"""

from collections import OrderedDict
from typing import NamedTuple

FREE_FAILURES = 5
FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 900.0
FORGET_S = 3600.0
# A flood of invented names must not fill the memory: the oldest entries are forgotten.
_MAX_ENTRIES = 10_000


class _Failures(NamedTuple):
    number: int
    at: float


class LoginAttempts:
    """Failed logins by address and by user name. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()

    def wait_s(self, address: str, user: str, now: float) -> float:
        """Return how long this login has to wait; 0 if it may try now."""
        return max(self._wait(("address", address), now), self._wait(("user", user), now))

    def failed(self, address: str, user: str, now: float) -> None:
        """Count a failure."""
        for key in (("address", address), ("user", user)):
            failures = self._failures.pop(key, None)
            count = 0 if failures is None or now - failures.at > FORGET_S else failures.number
            self._failures[key] = _Failures(count + 1, now)
        while len(self._failures) > _MAX_ENTRIES:
            self._failures.popitem(last=False)

    def succeeded(self, address: str, user: str) -> None:
        """Forget the failures of an address and a user."""
        self._failures.pop(("address", address), None)
        self._failures.pop(("user", user), None)

    def _wait(self, key: tuple[str, str], now: float) -> float:
        failures = self._failures.get(key)
        if failures is None or failures.number < FREE_FAILURES or now - failures.at > FORGET_S:
            return 0.0
        doublings = min(failures.number - FREE_FAILURES, 10)
        return max(0.0, failures.at + min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**doublings) - now)
