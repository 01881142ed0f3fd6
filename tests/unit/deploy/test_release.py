"""The program that builds a release: its files, notes, sums and bill of materials."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import ottla
from deploy.release import artifacts, sbom, smoke
from tests.law import source

LOCK = (source.ROOT / "requirements.lock").read_text("utf-8")


def test_scripts_are_built_from_a_folder_that_contains_them() -> None:
    """A source distribution cannot include a package outside of its folder."""
    text = (source.ROOT / "packaging" / "scripts" / "pyproject.toml").read_text("utf-8")
    former = tomllib.loads(text)
    project = tomllib.loads(artifacts.with_package_inside(text))
    targets = project["tool"]["hatch"]["build"]["targets"]
    own = tomllib.loads((source.ROOT / "pyproject.toml").read_text("utf-8"))
    own_targets = own["tool"]["hatch"]["build"]["targets"]
    for name in ("wheel", "sdist"):
        key = "core-metadata-version"
        assert targets[name][key] == own_targets[name][key]
    assert targets["wheel"]["packages"] == ["ottla_scripts"]
    assert project["project"] == former["project"]
    assert project["project"]["version"] == ottla.__version__
    with pytest.raises(ValueError, match="no table force-include"):
        artifacts.with_package_inside("[project]\n")


def test_changelog_has_notes_of_the_version() -> None:
    """The section of the version becomes the notes; a version without one cannot be released."""
    changelog = (source.ROOT / "CHANGELOG.md").read_text("utf-8")
    notes = artifacts.release_notes(changelog, ottla.__version__)
    assert notes.startswith(f"## [{ottla.__version__}]")
    assert "**Broker.**" in notes
    assert artifacts.release_notes("## [2.0]\na\n## [1.0]\nb\n", "2.0") == "## [2.0]\na\n"
    with pytest.raises(ValueError, match=r"no section \[9\.9\]: rename \[Unreleased\]"):
        artifacts.release_notes(changelog, "9.9")


def test_two_builds_are_compared_by_their_bytes(tmp_path: Path) -> None:
    """A file that differs, or that only one build has, is named."""
    for name, files in {"a": {"x": "1", "y": "1"}, "b": {"x": "1", "y": "2", "z": "1"}}.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text, "utf-8")
    assert artifacts.differing(tmp_path / "a", tmp_path / "a") == []
    assert artifacts.differing(tmp_path / "a", tmp_path / "b") == ["y", "z"]


def test_each_extra_is_tried() -> None:
    """A new extra needs a module that only works with it."""
    extras = artifacts.published_extras(source.ROOT / "pyproject.toml")
    assert set(extras) == set(smoke.MODULES)


def test_bill_of_materials_has_the_packages_that_users_get() -> None:
    """Packages of the tests are not among them; licences and hashes are."""
    bill = sbom.bill_of_materials(ottla.__version__, LOCK, 1_700_000_000)
    rows = {row["name"]: row for row in bill["components"]}
    locked = sbom.locked(LOCK)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert rows["click"]["scope"] == "required"
    assert rows["pyspark"]["scope"] == "optional"
    assert "kafka-python" not in rows
    assert rows["click"]["version"] == locked["click"].version
    assert rows["click"]["hashes"][0]["content"] in locked["click"].digests
    assert [row["name"] for row in bill["components"] if not row.get("licenses")] == []
    assert json.dumps(bill) == json.dumps(
        sbom.bill_of_materials(ottla.__version__, LOCK, 1_700_000_000)
    )


def test_bill_of_materials_has_the_vendored_assets() -> None:
    """They are those that the console's folder lists."""
    text = (source.ROOT / "ottla/console/static/vendor/README.md").read_text("utf-8")
    table = re.findall(r"\[(\w+)\]\((\S+)\).*?\| (\S+) \| (\S+) \(", text)
    assert [(name, version, licence, url) for name, url, version, licence in table] == list(
        sbom.VENDORED
    )
