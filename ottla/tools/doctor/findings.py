"""The findings of an examination: one per check, with a remedy for each problem."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class State(Enum):
    """The state of a check: `warn` works for now, `fail` does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """One check; `remedy` says what to do, and is empty only if the state is `ok`."""

    check: str
    state: State
    found: str
    remedy: str = ""


def ok(check: str, found: str) -> Finding:
    """Return a finding for a check that passed."""
    return Finding(check, State.OK, found)


def warn(check: str, found: str, remedy: str) -> Finding:
    """Return a finding for something that may fail later."""
    return Finding(check, State.WARN, found, remedy)


def fail(check: str, found: str, remedy: str) -> Finding:
    """Return a finding for something that does not work."""
    return Finding(check, State.FAIL, found, remedy)


def has_failed(findings: Iterable[Finding]) -> bool:
    """Return True if any check failed."""
    return any(finding.state is State.FAIL for finding in findings)
