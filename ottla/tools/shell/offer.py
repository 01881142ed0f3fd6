"""The offer of completion: once for each user, after the list of commands on a terminal."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ottla.tools import profiles
from ottla.tools.output import note

_LINES = {
    "bash": ("~/.bashrc", 'eval "$(ottla completion bash)"'),
    "zsh": ("~/.zshrc", 'eval "$(ottla completion zsh)"'),
    "fish": ("~/.config/fish/config.fish", "ottla completion fish | source"),
}


def offer_completion(environment: Mapping[str, str] = os.environ) -> None:
    """Print the line that sets up completion in the user's shell, unless it was printed before."""
    shell = Path(environment.get("SHELL", "")).name
    if shell not in _LINES:
        return
    mark = profiles.path().with_name("completion-offered")
    # A folder that cannot be written would have the offer repeated.
    with suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch(exist_ok=False)
        file, line = _LINES[shell]
        note(f"\nTo complete commands with Tab, add this line to {file}: {line}")
