"""The settings with which Spark accesses local files without starting processes."""

import logging
import os
from pathlib import Path

import pytest

from ottla.streams.spark.session.local_files import jar, local_files_settings

IMPLEMENTATION = "spark.hadoop.fs.file.impl"
CLASS_PATH = "spark.driver.extraClassPath"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache for the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def make_jar() -> str:
    """Create the jar with the compiled classes in the cache; return its path."""
    jar().parent.mkdir(parents=True)
    jar().write_bytes(b"")
    return str(jar())


def test_cached_classes_are_not_compiled_again() -> None:
    """Java is not needed if the jar exists."""
    jar_path = make_jar()
    actual = local_files_settings("/no/java/here", {})
    assert actual[CLASS_PATH] == jar_path
    assert actual[IMPLEMENTATION] == "ottla.LocalFiles"


def test_a_class_path_of_the_user_is_kept() -> None:
    """It follows the jar."""
    jar_path = make_jar()
    actual = local_files_settings("/no/java/here", {CLASS_PATH: "/opt/own.jar"})
    assert actual[CLASS_PATH] == os.pathsep.join((jar_path, "/opt/own.jar"))


def test_a_file_system_of_the_user_is_kept() -> None:
    """A file system that the user has configured is not replaced."""
    make_jar()
    assert local_files_settings("/no/java/here", {IMPLEMENTATION: "org.example.Files"}) == {}


def test_spark_runs_without_the_classes_if_they_cannot_be_compiled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A warning is logged, because micro-batches take longer; the cache stays empty."""
    with caplog.at_level(logging.WARNING):
        assert local_files_settings("/no/java/here", {}) == {}
    assert "Micro-batches take longer" in caplog.text
    assert list(jar().parent.iterdir()) == []
