"""Start Spark for a command that needs it, or report which packages to install."""

import importlib.util
from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.base.loading import load_module
from ottla.streams.settings.java import find_java_home
from ottla.tools.output import note
from ottla.tools.spark.stderr_filter import filter_spark_stderr

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy")


def check_installed() -> None:
    """Raise ConfigError, with the remedy, if Spark cannot be started here."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ConfigError(
            f"This command needs Spark, but {', '.join(missing)} {verb} not installed: "
            "pip install 'ottla[spark]'"
        )


def module(name: str) -> Any:
    """Import a module that needs Spark. Not at the top: Spark takes a second, and is an extra."""
    check_installed()
    return load_module(name)


def open_session(name: str, settings: Mapping[str, str], *, is_short: bool = False) -> Any:
    """Start Spark; from time to time print a hint how to make it start faster."""
    session = module("ottla.streams.spark.session.session")
    class_archive = module("ottla.streams.spark.session.class_archive")
    if not class_archive.archive_of(find_java_home()).is_file():
        note("Starting Spark (run `ottla spark warm` once to make this up to twice as fast) …")
    filter_spark_stderr()
    options = dict(settings)
    key = "spark.driver.extraJavaOptions"
    if is_short and key not in options:
        options[key] = class_archive.SHORT
    return session.session(name, settings=options)
