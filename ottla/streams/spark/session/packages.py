"""Packages as zip files, for executors without them: Spark adds such files to the path of its
workers.
"""

import importlib.util
import shutil
import tempfile
import zipfile
from pathlib import Path

from ottla.base.errors import ConfigError


class PackageFiles:
    """A folder of zip files, deleted by `remove`."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def zip_package(self, name: str) -> str:
        """Return a zip of a package or of a single-file module; raise ConfigError if it cannot be
        found.
        """
        top = name.partition(".")[0]
        result = importlib.util.find_spec(top)
        if result is None or result.origin is None:
            raise ConfigError(
                f"Module {top!r} cannot be found, so it cannot be shipped to executors."
            )
        origin = Path(result.origin)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ottla-packages-"))
        target = self._folder / f"{top}.zip"
        files = [origin]
        root = origin.parent
        if result.submodule_search_locations:
            root = origin.parent.parent
            files = sorted(file for file in origin.parent.rglob("*") if _is_shipped(file))
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, file.relative_to(root))
        return str(target)

    def remove(self) -> None:
        """Remove the files; idempotent."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _is_shipped(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
