"""Faults of a simulated file system: the n-th call of an operation fails, or all calls from then
on.
"""

import errno
import os
from dataclasses import dataclass

READS = frozenset(("read", "read_at", "list"))


class PowerLoss(KeyboardInterrupt):
    """The power failed inside a call; no later instruction ran.

    It is a KeyboardInterrupt, because asyncio passes that through a task to the caller of the loop.
    `faults` identifies the machine that lost power.
    """

    def __init__(self, faults: "Faults", call: str) -> None:
        super().__init__(call)
        self.faults = faults


@dataclass(slots=True)
class _Fault:
    operation: str
    path_part: str
    calls_before: int
    times: int
    error: int


class Faults:
    """The planned faults of one life of a process; `changes_count` numbers the calls that change
    data.
    """

    def __init__(self) -> None:
        self.changes_count = 0
        self._faults: list[_Fault] = []
        self._power_lost_at = 0

    def fail(
        self,
        operation: str,
        *,
        nth: int = 1,
        error: int = errno.EIO,
        path: str = "",
        times: int = 1,
    ) -> None:
        """Make the n-th call of an operation raise an OSError (`times` calls in all, -1 for all).

        `operation` is a method's name (both appends are `append`); `path` is a part of the path.
        """
        self._faults.append(_Fault(operation, path, nth - 1, times, error))

    def lose_power_at(self, change: int) -> None:
        """Make the n-th change from now raise PowerLoss; the test then calls `power_loss`."""
        self._power_lost_at = self.changes_count + change

    def enter(self, operation: str, path: str) -> None:
        """Count a call, and fail it if a fault is planned for it."""
        if operation not in READS:
            self.changes_count += 1
            if self.changes_count == self._power_lost_at:
                raise PowerLoss(self, f"at change {self.changes_count}: {operation} {path}")
        for fault in self._faults:
            if fault.operation != operation or fault.path_part not in path or fault.times == 0:
                continue
            if fault.calls_before > 0:
                fault.calls_before -= 1
                continue
            fault.times -= 1
            raise OSError(fault.error, os.strerror(fault.error), path)
