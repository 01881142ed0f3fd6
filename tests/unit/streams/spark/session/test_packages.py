"""Packages as zip files for executors."""

import zipfile
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.spark.session.packages import PackageFiles


def test_a_package_is_zipped_whole_and_removed() -> None:
    """Importable from the zip: below its own name, without caches."""
    files = PackageFiles()
    made = files.zip_package("ottla")
    names = zipfile.ZipFile(made).namelist()
    assert "ottla/__init__.py" in names
    assert "ottla/streams/spark/stages/tasks.py" in names
    assert not [name for name in names if "__pycache__" in name]
    files.remove()
    files.remove()
    assert not Path(made).exists()


def test_a_module_of_one_file_is_zipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the top of the zip."""
    (tmp_path / "single_module.py").write_text("number = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    files = PackageFiles()
    assert zipfile.ZipFile(files.zip_package("single_module")).namelist() == ["single_module.py"]
    files.remove()


def test_what_is_not_there_cannot_be_shipped() -> None:
    """The module is named."""
    with pytest.raises(ConfigError, match="Module 'not_there_at_all' cannot be found"):
        PackageFiles().zip_package("not_there_at_all.below")
