"""The work of `ottla log repair`, apart from the command, as in `formatting`."""

import os.path
from contextlib import ExitStack

from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem, RealFileSystem
from ottla.base.rng import SystemRng
from ottla.storage.directories import repair as repairs
from ottla.storage.directories.log_directory import lock_directory
from ottla.storage.directories.repair import Repair
from ottla.tools.log.formatting import settings_of
from ottla.tools.output import Output, note

_COLUMNS = ("directory", "log", "restored", "replaces", "executed")


def repair(
    output: Output, config: str | None, data: str | None, folder: str | None, execute: bool
) -> None:
    """Show or execute the repairs of the log directories of a broker."""
    files = RealFileSystem()
    directories = [os.path.abspath(path) for path in settings_of(config, data).strings("log.dirs")]
    with ExitStack() as locks:
        for path in directories:
            if not files.is_directory(path):
                raise ConfigError(f"the log directory {path} does not exist")
            if execute:
                locks.callback(lock_directory(files, path).release)
        plans = _plans(files, directories, folder)
        rng = SystemRng()
        displaced = [
            repairs.execute(files, item, lambda: rng.random_bytes(16).hex()) if execute else ""
            for item in plans
        ]
    rows = [
        {
            "directory": item.directory,
            "log": item.stray,
            "restored": item.target,
            "replaces": (name or item.replaced) or None,
            "executed": execute,
        }
        for item, name in zip(plans, displaced, strict=True)
    ]
    output.rows(rows, _COLUMNS, empty="No log has to be restored.")
    if plans and not execute:
        note("Nothing was changed. Stop the broker, and repeat the command with --execute.")


def _plans(files: FileSystem, directories: list[str], folder: str | None) -> list[Repair]:
    """Return the repairs of all directories, or the one of a folder in one of them."""
    if folder is None:
        return [item for path in directories for item in repairs.plan(files, path)]
    name = os.path.basename(os.path.normpath(folder))
    for path in directories:
        if files.exists(f"{path}/{name}"):
            return repairs.plan(files, path, name)
    raise ConfigError(f"none of the log directories has a folder {name!r}")
