"""Errors in another process: a pool of workers raises them in its caller."""

import pickle

import pytest

from ottla.base.errors import ApiError, ErrorCode, OttlaError, StorageError
from ottla.client.errors import DeserializationError, Fenced, Unsupported

ERRORS = [
    ApiError(ErrorCode.MESSAGE_TOO_LARGE, "too large", subject="Topic 't'"),
    ApiError(ErrorCode.NOT_COORDINATOR),
    StorageError("/data", "cannot be read"),
    DeserializationError("no UTF-8", "t", 1, 5),
    Unsupported("no such API", api="Fetch"),
    Fenced("taken over"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_can_be_pickled(error: OttlaError) -> None:
    """The copy has the type, the text and the attributes, such as code and offset."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
