"""Calls that only some operating systems have, each with its portable form.

Ottla is developed on Linux and runs on macOS and the BSDs as well; the client library, `read_table`
and the test driver of streams also run on Windows. A module of this package chooses the function
for the system when it is imported, so that a call costs the same as a call of `os`. No other
package uses a name that Linux alone has (tests/law/test_platforms.py), and tests/portable removes
these names. docs/platforms.md describes the differences that users notice.
"""

import sys
from typing import Final

# Variables, because mypy would otherwise skip the code for other systems than the developer's.
NAME: Final[str] = sys.platform
IS_LINUX: Final[bool] = NAME == "linux"
IS_MACOS: Final[bool] = NAME == "darwin"
IS_WINDOWS: Final[bool] = NAME == "win32"
# The command that shows which process listens on which port, and where a user raises limits.
LISTENERS_COMMAND: Final[str] = "ss -ltnp" if IS_LINUX else "lsof -nP -iTCP -sTCP:LISTEN"
LIMITS_PLACE: Final[str] = (
    "/etc/security/limits.conf" if IS_LINUX else "`launchctl limit maxfiles` or login.conf(5)"
)
