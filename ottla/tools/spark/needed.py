"""Opens Spark for a verb that needs it, or says in a sentence what to install."""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.streams.settings.java import find_java_home
from ottla.tools.output import note
from ottla.tools.spark.talk import hear_spark

_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy")


def check_installed() -> None:
    """Raise ConfigError, with the remedy, where Spark cannot be started here."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"This runs on Spark, and {' and '.join(missing)} is not installed: "
            "pip install 'ottla[spark]'"
        )


def module(name: str) -> Any:
    """Import a module of ottla.streams.spark; only now, as it costs a second, and Spark may not be there."""
    check_installed()
    return importlib.import_module(f"ottla.streams.spark.{name}")


def open_session(name: str, settings: Mapping[str, str], *, is_short: bool = False) -> Any:
    """Start Spark; tell once in a while how it would start faster."""
    session, warming = module("session.session"), module("session.class_archive")
    if not warming.archive_of(find_java_home()).is_file():
        note("Starting Spark (`ottla spark warm`, once, makes this up to twice as fast) …")
    hear_spark()
    options = dict(settings)
    key = "spark.driver.extraJavaOptions"
    if is_short and key not in options:
        options[key] = warming.SHORT
    return session.session(name, settings=options)
