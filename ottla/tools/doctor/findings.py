"""What an examination yields: one finding a check, with a remedy where something is wrong."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple


class State(Enum):
    """How well it is: `warn` works for now, `fail` does not work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """One check; `remedy` says what to do and is empty only where all is well."""

    check: str
    state: State
    found: str
    remedy: str = ""


def ok(check: str, found: str) -> Finding:
    """Return a finding of something that is well."""
    return Finding(check, State.OK, found)


def warn(check: str, found: str, remedy: str) -> Finding:
    """Return a finding of something that may go wrong."""
    return Finding(check, State.WARN, found, remedy)


def fail(check: str, found: str, remedy: str) -> Finding:
    """Return a finding of something that is wrong."""
    return Finding(check, State.FAIL, found, remedy)


def has_failed(findings: Iterable[Finding]) -> bool:
    """Tell whether anything does not work."""
    return any(finding.state is State.FAIL for finding in findings)
