"""Build and check what a release publishes: `make release`, or `python -m deploy.release`.

From the commit that is checked out, in out/release:

* wheel and source distribution of `ottla` and `ottla-scripts`, built twice: the same bytes;
* `ottla-<version>.cdx.json`, the software bill of materials (CycloneDX), and `SHA256SUMS`;
* `NOTES.md`, the section of CHANGELOG.md;
* the wheels are installed in a clean environment for each extra, and used (`smoke.py`).

The source date is the commit's, so that everyone who builds the commit gets the same files.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.release.artifacts import (
    RELEASED,
    copy_sources,
    differing,
    published_extras,
    release_notes,
    scripts_project,
    sums,
)
from deploy.release.sbom import bill_of_materials

_ROOT = Path(__file__).parents[2]
_TWINE = "twine==6.2.0"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, check and try; return the exit code."""
    parser = argparse.ArgumentParser(prog="deploy.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=_ROOT / "out" / "release")
    parser.add_argument("--extra", action="append", help="try this extra only ('' is none)")
    options = parser.parse_args(arguments)
    version = _version()
    # Both builds are of this one, even if another commit follows while they run.
    commit, date = _commit()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    for former in out.iterdir():
        former.unlink()
    with tempfile.TemporaryDirectory() as folder:
        second = Path(folder) / "second"
        for number, target in enumerate((out, second)):
            _build(Path(folder) / f"sources{number}", target, commit, date)
        if names := differing(out, second):
            raise SystemExit(f"not reproducible: {', '.join(names)} differ in two builds")
    print(f"built twice, the same: {', '.join(sorted(sums(out)))}")
    _run([*_uv(), "tool", "run", "--from", _TWINE, "twine", "check", "--strict", *_files(out)])
    lock = (_ROOT / "requirements.lock").read_text("utf-8")
    bill = bill_of_materials(version, lock, int(date))
    (out / f"ottla-{version}.cdx.json").write_text(json.dumps(bill, indent=2) + "\n", "utf-8")
    notes = release_notes((_ROOT / "CHANGELOG.md").read_text("utf-8"), version)
    (out / "NOTES.md").write_text(notes, "utf-8")
    for extra in options.extra or ["", *published_extras(_ROOT / "pyproject.toml")]:
        _try(out, version, extra)
    rows = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums(out).items()))
    (out / "SHA256SUMS").write_text(rows, "utf-8")
    print(f"the release is in {out}")
    return 0


def _version() -> str:
    text = (_ROOT / "ottla" / "__init__.py").read_text("utf-8")
    return text.partition('__version__ = "')[2].partition('"')[0]


def _build(sources: Path, out: Path, commit: str, date: str) -> None:
    copy_sources(_ROOT, commit, sources)
    scripts = scripts_project(sources)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": date}
    for project in (sources, scripts):
        command = [*_uv(), "build", "-q", "--sdist", "--wheel", "-o", str(out), str(project)]
        _run(command, environment)
    for path in out.iterdir():
        if not path.name.endswith(RELEASED):
            path.unlink()


def _commit() -> tuple[str, str]:
    """Return the commit that is checked out, and its time (s)."""
    command = ["git", "log", "-1", "--format=%H %ct"]
    output = subprocess.run(command, cwd=_ROOT, capture_output=True, check=True, text=True).stdout
    commit, _, date = output.strip().partition(" ")
    return commit, date


def _try(out: Path, version: str, extra: str) -> None:
    """Install the wheels in a clean environment, and use them."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        python = environment / "bin" / "python"
        _run([*_uv(), "venv", "-q", "--python", sys.executable, str(environment)])
        wheel = str(out / f"ottla-{version}-py3-none-any.whl")
        wheels = [f"{wheel}[{extra}]" if extra and extra != "scripts" else wheel, "pytest"]
        if extra == "scripts":
            wheels.append(str(out / f"ottla_scripts-{version}-py3-none-any.whl"))
        _run([*_uv(), "pip", "install", "-q", "--python", str(python), *wheels])
        smoke = Path(__file__).with_name("smoke.py")
        # Not the checkout: the wheel is imported.
        _run([str(python), "-I", str(smoke), extra], cwd=Path(folder))
    print(f"tried in a clean environment: ottla{f'[{extra}]' if extra else ''}")


def _uv() -> list[str]:
    return [sys.executable, "-m", "uv"]


def _files(out: Path) -> list[str]:
    return [str(out / name) for name in sorted(sums(out))]


def _run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, cwd: Path = _ROOT
) -> None:
    subprocess.run(command, env=environment, cwd=cwd, check=True)


if __name__ == "__main__":
    sys.exit(main())
