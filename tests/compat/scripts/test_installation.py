"""`pip install ottla[scripts]`: the wheels, and the programs that they install."""

import configparser
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ottla_scripts.table import SCRIPTS

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.compat
def test_extra_installs_every_script(tmp_path: Path) -> None:
    """The extra selects the wheel of packaging/scripts, which has the package and each name with
    and without .sh; the wheel of ottla has neither.
    """
    wheels = tmp_path / "wheels"
    for source in (_ROOT, _ROOT / "packaging" / "scripts"):
        built = subprocess.run(
            [sys.executable, "-m", "uv", "build", "-q", "--wheel", "-o", str(wheels), str(source)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        if built.returncode and "hatchling" in built.stderr:
            pytest.skip("uv cannot fetch hatchling, which builds the wheels")
        assert built.returncode == 0, built.stderr
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    report = tmp_path / "report.json"
    words = ["--dry-run", "--no-index", "--find-links", str(wheels), "--report", str(report)]
    subprocess.run([*pip, "install", "-q", *words, "ottla[scripts]"], check=True, cwd=tmp_path)
    names = {row["metadata"]["name"] for row in json.loads(report.read_text())["install"]}
    assert "ottla-scripts" in names
    (wheel,) = wheels.glob("ottla_scripts-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        text = archive.read(entry_points).decode()
        modules = {name for name in archive.namelist() if name.startswith("ottla_scripts/")}
    sources = {str(path.relative_to(_ROOT)) for path in (_ROOT / "ottla_scripts").rglob("*.py")}
    assert modules == sources
    (wheel,) = wheels.glob("ottla-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not any(name.startswith("ottla_scripts") for name in archive.namelist())
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read_string(text)
    programs = {name for script in SCRIPTS for name in (script, f"{script}.sh")}
    assert set(parser["console_scripts"]) == programs
    assert set(parser["console_scripts"].values()) == {"ottla_scripts.entry:main"}
