"""The files with the states of pipelines, in one folder of the user.

A run of a name and a checkpoint has one file.
"""

import hashlib
import json
import os
import platform
import time
from pathlib import Path

from ottla.base.user_folders import state_folder
from ottla.client.security.private_files import write_private
from ottla.streams.application.pipeline_status import PipelineStatus

_SUFFIX = ".json"
# Old runs are listed for this time.
_KEPT_MS = 7 * 86_400_000


def folder() -> Path:
    """Return the folder of the files."""
    return state_folder() / "pipelines"


def read_all() -> list[PipelineStatus]:
    """Return the last status of each run of the user, by name; damaged files are left out."""
    found = []
    paths = sorted(folder().glob(f"*{_SUFFIX}")) if folder().is_dir() else []
    for path in paths:
        try:
            found.append(PipelineStatus.from_json(json.loads(path.read_text("utf-8"))))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    now_ms = time.time_ns() // 1_000_000
    recent = (row for row in found if now_ms - row.at_ms < _KEPT_MS)
    return sorted(recent, key=lambda row: (row.pipeline, row.checkpoint))


def is_alive(run: PipelineStatus) -> bool:
    """Return True unless the run's process is one of this machine and has ended."""
    if run.host != platform.node():
        return True
    try:
        os.kill(run.process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def write(status: PipelineStatus) -> None:
    """Replace the file of a run; OSError if the folder cannot be written."""
    name = f"{status.pipeline}\n{status.checkpoint}"
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    path = folder() / f"{digest}{_SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, json.dumps(status.to_json()))
