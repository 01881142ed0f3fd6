"""The problems of a pipeline file: each has a position, and all are reported together."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True, order=True)
class FilePosition:
    """A position in a file; lines and columns count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem that is an error or a warning (probably a mistake)."""

    position: FilePosition
    message: str
    severity: str = ERROR

    def __str__(self) -> str:
        mark = "" if self.severity == ERROR else "warning: "
        return f"{self.position}: {mark}{self.message}"


@dataclass
class Problems:
    """Collects the problems of a check."""

    _problems: set[Problem] = field(default_factory=set)

    def error(self, position: FilePosition, message: str) -> None:
        """Note an error, which prevents the file from running."""
        self._problems.add(Problem(position, message))

    def warn(self, position: FilePosition, message: str) -> None:
        """Note a warning: the file can run, but this is probably not intended."""
        self._problems.add(Problem(position, message, WARNING))

    @property
    def in_order(self) -> list[Problem]:
        """Return all problems by line and column."""
        return sorted(self._problems)

    @property
    def has_errors(self) -> bool:
        """True if there are errors, so that the file cannot run."""
        return any(problem.severity == ERROR for problem in self._problems)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the closest known name, or all known names."""
    names = sorted(set(known))
    lower = {known_name.lower(): known_name for known_name in names}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {lower[near[0]]}?"
    return f"There are: {', '.join(names)}." if names else "No name is known."
