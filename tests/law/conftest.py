"""What the law tests share is given back behind the last of them."""

from collections.abc import Iterator

import pytest

from tests.law import source


@pytest.fixture(scope="package", autouse=True)
def sources() -> Iterator[None]:
    """Files are read and parsed once."""
    yield
    source.forget()
