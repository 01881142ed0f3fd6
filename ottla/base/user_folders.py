"""The folders of a user's own files, by the XDG base directories."""

import os
from pathlib import Path


def state_folder() -> Path:
    """Return the folder of what commands remember; OTTLA_STATE_DIR and XDG_STATE_HOME move it."""
    own = os.environ.get("OTTLA_STATE_DIR")
    if own:
        return Path(own)
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home, "ottla")
