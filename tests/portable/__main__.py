"""Run tests in the portable mode: `python -m tests.portable [pytest's arguments]`.

Without arguments, the quick tests of the packages that use the operating system run.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tests.law import source

SITE = source.ROOT / "tests/portable/site"
QUICK = ("-q", "-p", "no:cacheprovider", "-m", "not slow and not spark and not compat")
FOLDERS = tuple(
    f"tests/unit/{name}"
    for name in ("base", "storage", "net", "server", "client", "testing", "console", "tools")
)


def environment(**values: str) -> dict[str, str]:
    """Return the environment of a process in the portable mode, and of its descendants."""
    return {**os.environ, "PYTHONPATH": str(SITE), **values}


def portable_pytest(
    arguments: Sequence[str], variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run pytest in the portable mode; its output is that of the process if it is not captured."""
    command = [sys.executable, "-m", "pytest", *QUICK, *arguments]
    return subprocess.run(command, env=dict(variables), cwd=source.ROOT, text=True, check=False)


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["-n", "3", *FOLDERS]
    sys.exit(portable_pytest(chosen, environment()).returncode)
