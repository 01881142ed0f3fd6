"""The public names of `ottla.streams`: imported on first use, the same objects as in their modules."""

import subprocess
import sys

import pytest

import ottla.streams
from ottla.streams import names


def test_public_names_are_those_of_their_modules() -> None:
    """Each name of `__all__` resolves, and `dir` lists it."""
    assert ottla.streams.__all__ == names.__all__
    assert {
        name for name in names.__all__ if getattr(ottla.streams, name) is not vars(names)[name]
    } == set()
    assert set(names.__all__) < set(dir(ottla.streams))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The error names module and attribute, as Python's own."""
    with pytest.raises(AttributeError, match=r"module 'ottla\.streams' has no attribute 'KSteam'"):
        ottla.streams.KSteam  # noqa: B018


def test_a_module_of_streams_does_not_import_the_dsl() -> None:
    """Spark's workers and the tools import modules below `ottla.streams` without its public names."""
    code = (
        "import sys, ottla.streams.application.listing;"
        "print('ottla.streams.names' in sys.modules, 'ottla.streams.dsl' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
