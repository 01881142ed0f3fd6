"""What Spark's Python workers collect after each task."""

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from ottla.streams.spark.connector.workers import settle, settle_after_work


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    """Nothing is left out of collections when the next test begins."""
    yield
    gc.unfreeze()


def test_a_worker_that_spark_keeps_collects_no_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a worker that Spark keeps, what is loaded is left out of the collection after every task."""
    worker = ModuleType("__main__")
    worker.__spec__ = ModuleSpec("pyspark.daemon", None)
    monkeypatch.setitem(sys.modules, "__main__", worker)
    objects_count = len(gc.get_objects())
    settle()
    assert gc.get_freeze_count() >= objects_count
    assert len(gc.get_objects()) < objects_count / 100


def test_the_program_of_a_user_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any other process the garbage collector stays as it is, also where the program has no name."""
    for spec in (None, ModuleSpec("pytest", None)):
        program = ModuleType("__main__")
        program.__spec__ = spec
        monkeypatch.setitem(sys.modules, "__main__", program)
        settle()
        assert gc.get_freeze_count() == 0


def test_what_a_first_task_has_loaded_is_left_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow imports pandas at its first values; what later tasks leave is garbage like any other."""
    worker = ModuleType("__main__")
    worker.__spec__ = ModuleSpec("pyspark.daemon", None)
    monkeypatch.setitem(sys.modules, "__main__", worker)
    settle_after_work.cache_clear()
    settle_after_work()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    settle_after_work()
    assert gc.get_freeze_count() == 0
