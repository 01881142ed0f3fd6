"""Where the tests create temporary files: in memory, if there is enough of it.

Tests write thousands of small files and sync them, which takes three times as long on a disk.
"""

import os
import shutil
from collections.abc import MutableMapping
from pathlib import Path

MEMORY = Path("/dev/shm")
# A run needs a tenth of it. Containers often have only 64 MiB.
FREE_BYTES_MIN = 4 << 30


def use_memory(
    environment: MutableMapping[str, str],
    memory: Path = MEMORY,
    free_bytes_min: int = FREE_BYTES_MIN,
) -> None:
    """Let TMPDIR name the file system in memory, unless it is small or TMPDIR is set."""
    if "TMPDIR" in environment or not os.access(memory, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(memory).free >= free_bytes_min:
        environment["TMPDIR"] = str(memory)
