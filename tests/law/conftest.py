"""Frees the parsed sources after the last law test."""

from collections.abc import Iterator

import pytest

from tests.law import source


@pytest.fixture(scope="package", autouse=True)
def sources() -> Iterator[None]:
    """Read and parse files once."""
    yield
    source.forget()
