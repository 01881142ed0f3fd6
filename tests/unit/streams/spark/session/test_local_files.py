"""Which settings let Spark keep files on this machine without starting processes."""

import logging
import os
from pathlib import Path

import pytest

from ottla.streams.spark.session.local_files import jar, local_files_settings

IMPLEMENTATION = "spark.hadoop.fs.file.impl"
CLASS_PATH = "spark.driver.extraClassPath"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def make_jar() -> str:
    """Have the classes in the cache, as if somebody had compiled them."""
    jar().parent.mkdir(parents=True)
    jar().write_bytes(b"")
    return str(jar())


def test_classes_that_are_in_the_cache_are_not_compiled_again() -> None:
    """No Java is asked where there is a jar."""
    made = make_jar()
    found = local_files_settings("/no/java/here", {})
    assert found[CLASS_PATH] == made
    assert found[IMPLEMENTATION] == "ottla.LocalFiles"


def test_a_class_path_of_the_users_stays() -> None:
    """It comes after the jar."""
    made = make_jar()
    found = local_files_settings("/no/java/here", {CLASS_PATH: "/opt/own.jar"})
    assert found[CLASS_PATH] == os.pathsep.join((made, "/opt/own.jar"))


def test_a_file_system_of_the_users_stays() -> None:
    """Who names one knows why."""
    make_jar()
    assert local_files_settings("/no/java/here", {IMPLEMENTATION: "org.example.Files"}) == {}


def test_spark_runs_without_the_classes_where_they_cannot_be_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is told, since micro-batches take longer, and nothing is left in the cache."""
    with caplog.at_level(logging.WARNING):
        assert local_files_settings("/no/java/here", {}) == {}
    assert "Micro-batches take longer" in caplog.text
    assert list(jar().parent.iterdir()) == []
