"""Packages as zip files for executors."""

import zipfile
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.spark.session.packages import PackageFiles


def test_a_package_is_zipped_and_removed() -> None:
    """It can be imported from the zip, which contains no caches."""
    files = PackageFiles()
    archive = files.zip_package("ottla")
    names = zipfile.ZipFile(archive).namelist()
    assert "ottla/__init__.py" in names
    assert "ottla/streams/spark/stages/tasks.py" in names
    assert not [name for name in names if "__pycache__" in name]
    files.remove()
    files.remove()
    assert not Path(archive).exists()


def test_a_single_module_is_zipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is at the top of the zip."""
    (tmp_path / "single_module.py").write_text("number = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    files = PackageFiles()
    assert zipfile.ZipFile(files.zip_package("single_module")).namelist() == ["single_module.py"]
    files.remove()


def test_a_missing_module_is_rejected() -> None:
    """The error names the module."""
    with pytest.raises(ConfigError, match="Module 'not_there_at_all' cannot be found"):
        PackageFiles().zip_package("not_there_at_all.below")
