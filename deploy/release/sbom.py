"""The software bill of materials: CycloneDX 1.6, from the locked versions.

It has the packages that users of a published extra get, without the packages of the tests, and the
assets that the wheel contains. The licences are as the installed packages declare them.

Not done: packages of other systems and Pythons, which the environment does not have.
"""

import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, NamedTuple

_LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})")
_REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[(?P<extras>[^]]*)\])?")
_EXTRA = re.compile(r"extra == ['\"](?P<name>[^'\"]+)['\"]")
_INTERNAL = ("dev", "demo")
_PURPOSE = "https://ottla.invalid/sbom/"

# Files of other projects in the wheel; a test compares them with the folder.
VENDORED = (("uPlot", "1.6.32", "MIT", "https://github.com/leeoniya/uPlot"),)


class LockedPackage(NamedTuple):
    """A package in requirements.lock."""

    name: str
    version: str
    digests: tuple[str, ...]


def locked(lock: str) -> dict[str, LockedPackage]:
    """Return the packages of a lock file by their normalized names."""
    packages = {}
    rows = list(_LOCKED.finditer(lock))
    for number, row in enumerate(rows):
        end = rows[number + 1].start() if number + 1 < len(rows) else len(lock)
        digests = tuple(_HASH.findall(lock[row.start() : end]))
        name = normalized(row["name"])
        packages[name] = LockedPackage(name, row["version"], digests)
    return packages


def normalized(name: str) -> str:
    """Return the name of a package as registries compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def delivered() -> dict[str, bool]:
    """Return the packages that an installation needs, and True for those that it always has."""
    needed = dict.fromkeys(_closure("ottla", ()), True)
    extras = [name for name in metadata.metadata("ottla").get_all("Provides-Extra") or ()]
    for name in _closure("ottla", [extra for extra in extras if extra not in _INTERNAL]):
        needed.setdefault(name, False)
    return {name: value for name, value in needed.items() if not name.startswith("ottla")}


def _closure(name: str, extras: Iterable[str]) -> set[str]:
    seen: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [(normalized(name), tuple(extras))]
    while waiting:
        step = waiting.pop()
        if step not in seen:
            seen.add(step)
            waiting += _requirements(*step)
    return {name for name, _ in seen}


def _requirements(name: str, extras: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        rows = metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        return
    for row in rows:
        condition = _EXTRA.search(row)
        if condition is None or condition["name"] in extras:
            match = _REQUIREMENT.match(row)
            assert match is not None, row
            chosen = tuple(part.strip() for part in (match["extras"] or "").split(",") if part)
            yield normalized(match["name"]), chosen


def bill_of_materials(version: str, lock: str, timestamp: int) -> dict[str, Any]:
    """Return the document for a version of Ottla, whose source has this date (s)."""
    packages = locked(lock)
    components = [
        _component(packages[name], is_required=is_required)
        for name, is_required in sorted(delivered().items())
        if name in packages
    ]
    root = f"pkg:pypi/ottla@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{_PURPOSE}{version}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(timestamp, UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "ottla",
                "version": version,
                "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": [*components, *(_vendored(*row) for row in VENDORED)],
    }


def _component(package: LockedPackage, *, is_required: bool) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name}@{package.version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "scope": "required" if is_required else "optional",
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in package.digests],
    }
    if licence := _licence(package.name):
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def _licence(name: str) -> str:
    """Return the licence that an installed package declares; empty if it declares none."""
    try:
        facts = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    prefix = "License :: OSI Approved :: "
    classifiers = [row for row in facts.get_all("Classifier") or () if row.startswith(prefix)]
    short = (facts.get("License-Expression") or facts.get("License") or "").strip()
    if short and "\n" not in short:
        return short
    return classifiers[0].removeprefix(prefix) if classifiers else ""


def _vendored(name: str, version: str, licence: str, address: str) -> dict[str, Any]:
    purl = f"pkg:npm/{name.lower()}@{version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "scope": "required",
        "purl": purl,
        "licenses": [{"license": {"id": licence}}],
        "externalReferences": [{"type": "website", "url": address}],
    }
