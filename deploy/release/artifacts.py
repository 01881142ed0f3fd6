"""The files of a release: their sources, their sums, and the notes."""

import hashlib
import io
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

RELEASED = (".whl", ".tar.gz")
# Extras that the repository's own tools use.
_INTERNAL_EXTRAS = ("dev", "demo")
# As in the project of ottla.
_SCRIPTS_TARGETS = """[tool.hatch.build.targets.wheel]
packages = ["ottla_scripts"]
core-metadata-version = "2.4"

[tool.hatch.build.targets.sdist]
core-metadata-version = "2.4"

"""
_SECTION = re.compile(r"^## \[(?P<name>[^]]+)\].*$", re.MULTILINE)


def copy_sources(root: Path, commit: str, target: Path) -> None:
    """Copy the files of a commit, not the files that are being edited."""
    command = ["git", "archive", "--format=tar", commit]
    archive = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(target, filter="data")


def scripts_project(sources: Path) -> Path:
    """Return a folder from which both distributions of the scripts can be built.

    In the repository the package is outside of the folder of its project, which a wheel can
    include, but not a source distribution.
    """
    project = sources / "out-scripts"
    project.mkdir()
    described = sources / "packaging" / "scripts"
    shutil.copy(described / "README.md", project)
    text = (described / "pyproject.toml").read_text("utf-8")
    (project / "pyproject.toml").write_text(with_package_inside(text), "utf-8")
    shutil.copytree(sources / "ottla_scripts", project / "ottla_scripts")
    shutil.copy(sources / "LICENSE", project)
    return project


def with_package_inside(project: str) -> str:
    """Return the project file of the scripts for a folder that contains the package."""
    before, _, rest = project.partition("[tool.hatch.build.targets.wheel.force-include]\n")
    if not rest:
        raise ValueError("the project of the scripts has no table force-include")
    _, _, after = rest.partition("\n\n")
    return f"{before}{_SCRIPTS_TARGETS}{after}"


def sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each distribution and document in a folder."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "SHA256SUMS"
    }


def differing(first: Path, second: Path) -> list[str]:
    """Return the names of the files that are not the same in both folders."""
    left, right = sums(first), sums(second)
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def published_extras(project: Path) -> list[str]:
    """Return the extras of the project that users install."""
    extras = tomllib.loads(project.read_text("utf-8"))["project"]["optional-dependencies"]
    return [name for name in extras if name not in _INTERNAL_EXTRAS]


def release_notes(changelog: str, version: str) -> str:
    """Return the section of a version; ValueError if the changelog has none."""
    sections = list(_SECTION.finditer(changelog))
    for number, section in enumerate(sections):
        if section["name"] == version:
            end = sections[number + 1].start() if number + 1 < len(sections) else len(changelog)
            return changelog[section.start() : end].rstrip() + "\n"
    raise ValueError(f"CHANGELOG.md has no section [{version}]: rename [Unreleased] to it")
