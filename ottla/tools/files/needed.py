"""The libraries of the engine in this process, or the command that installs them."""

import importlib.util

from ottla.base.errors import ConfigError

_PACKAGES = ("pyarrow", "numpy")


def check_installed() -> None:
    """Raise ConfigError, with the remedy, if files cannot be read and written in this process."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ConfigError(
            f"This command needs {' and '.join(missing)}, which {verb} not installed: "
            "pip install 'ottla[arrow]'"
        )
