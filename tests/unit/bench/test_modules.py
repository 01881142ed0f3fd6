"""Every measurement can be started: `python -m bench.NAME` imports what exists."""

import importlib
import pkgutil

import pytest

import bench

# quixstreams is not installed with Ottla.
NAMES = sorted(
    module.name for module in pkgutil.iter_modules(bench.__path__) if module.name != "streams_quix"
)


@pytest.mark.parametrize("name", NAMES)
def test_a_measurement_can_be_imported(name: str) -> None:
    """A part that another module of bench has moved is found."""
    assert importlib.import_module(f"bench.{name}").__doc__
