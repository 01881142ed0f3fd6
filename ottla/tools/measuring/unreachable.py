"""A warning that no broker responds, which is repeated while that lasts."""

import math
import time
from collections.abc import Callable

_WARNING_SECONDS = 5.0


def repeated_warning(write: Callable[[str], None], text: str) -> Callable[[], None]:
    """Return a function that writes a text, at most every five seconds."""
    warned_at = -math.inf

    def warn() -> None:
        nonlocal warned_at
        if time.monotonic() - warned_at >= _WARNING_SECONDS:
            warned_at = time.monotonic()
            write(text)

    return warn
