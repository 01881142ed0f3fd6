"""The archive of Java's classes: which file fits a start."""

from pathlib import Path

import pytest

from ottla.streams.spark.session.class_archive import archive_of


def test_an_archive_fits_one_installation_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another SPARK_HOME has another class path: Java would ignore the archive."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    installed = archive_of("/java")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert archive_of("/java") != installed
    monkeypatch.delenv("SPARK_HOME")
    assert archive_of("/java") == installed
