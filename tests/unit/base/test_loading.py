"""Modules that are imported when they are used."""

import sys
from pathlib import Path

import pytest

from ottla.base.loading import deferred, deferred_module


def _written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "late_module.py").write_text("SIZE = 3\n\ndef double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "late_module", raising=False)
    return "late_module"


def test_a_deferred_module_is_imported_at_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deferred module is imported when an attribute is read, and has the module's attributes."""
    name = _written(tmp_path, monkeypatch)
    late = deferred_module(name)
    assert name not in sys.modules
    assert (late.SIZE, late.double(4)) == (3, 8)
    assert name in sys.modules
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = late.missing


def test_a_deferred_function_is_imported_at_its_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deferred function imports its module when it is called."""
    name = _written(tmp_path, monkeypatch)
    double = deferred(name, "double")
    assert name not in sys.modules
    assert double(4) == 8


def test_an_absent_module_is_reported_at_its_first_use() -> None:
    """The error of an import that fails is raised where the module is used, each time."""
    absent = deferred_module("ottla.none")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match=r"ottla\.none"):
            _ = absent.size
