"""Garbage collection in Spark's Python workers after each task."""

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from ottla.streams.spark.connector.workers import freeze_objects, freeze_objects_after_first_task


@pytest.fixture(autouse=True)
def _frozen_as_before() -> Iterator[None]:
    """Unfreeze all objects for the test; objects of the test run are frozen (tests/conftest.py)."""
    was_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    yield
    gc.unfreeze()
    if was_frozen:
        gc.freeze()


def test_a_reused_worker_does_not_collect_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects of loaded modules are frozen, so that collections after tasks skip them."""
    worker = ModuleType("__main__")
    worker.__spec__ = ModuleSpec("pyspark.daemon", None)
    monkeypatch.setitem(sys.modules, "__main__", worker)
    # Threads of other tests create and free objects; modules stay.
    modules = set(map(id, sys.modules.values()))
    assert len(modules.intersection(map(id, gc.get_objects()))) > 100
    freeze_objects()
    assert not modules.intersection(map(id, gc.get_objects()))


def test_a_users_program_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any other process the garbage collector is unchanged, even if the program has no name."""
    for spec in (None, ModuleSpec("pytest", None)):
        program = ModuleType("__main__")
        program.__spec__ = spec
        monkeypatch.setitem(sys.modules, "__main__", program)
        freeze_objects()
        assert gc.get_freeze_count() == 0


def test_modules_loaded_by_the_first_task_are_frozen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow imports pandas at its first values; objects of later tasks are collected as usual."""
    worker = ModuleType("__main__")
    worker.__spec__ = ModuleSpec("pyspark.daemon", None)
    monkeypatch.setitem(sys.modules, "__main__", worker)
    freeze_objects_after_first_task.cache_clear()
    freeze_objects_after_first_task()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    freeze_objects_after_first_task()
    assert gc.get_freeze_count() == 0
