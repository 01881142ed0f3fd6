"""Run code in a new interpreter for the price of a fork.

A test that asks which modules are imported needs a process of its own. Most of its time goes into
the start of Python and the imports that all such tests of a file share: one process does both, and
forks for each piece of code.
"""

import subprocess
import sys
from types import TracebackType

# Only modules that every Python imports at its start are imported here.
_SERVER = r"""
import os, sys
exec(sys.argv[1], {"__name__": "__main__"})
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            exec(eval(line), {"__name__": "__main__"})
            sys.stdout.flush()
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    print("\0", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sep="", flush=True)
"""


class Forks:
    """A context manager; `preamble` is code that runs once, before the first fork."""

    def __init__(self, preamble: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, preamble],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Forks":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()

    def run(self, code: str) -> str:
        """Return the lines that the code prints.

        Raises RuntimeError if it ends with an exception, whose traceback is on standard error.
        """
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{code!r}\n")
        process.stdin.flush()
        lines = []
        for line in process.stdout:
            if line.startswith("\0"):
                break
            lines.append(line)
        else:
            raise RuntimeError("the process that forks has ended")
        if line != "\0" + "0\n":
            raise RuntimeError(f"the code ended with exit code {line[1:].strip()}")
        return "".join(lines)
