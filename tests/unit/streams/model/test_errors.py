"""Errors of streams are Ottla errors, which the command line shows without a traceback."""

import pytest

from ottla.base.errors import OttlaError
from ottla.streams.model import errors
from ottla.streams.spark.query.failures import QueryError
from ottla.tools import main


@pytest.mark.parametrize(
    "kind",
    [
        errors.StreamsError,
        errors.TopologyError,
        errors.SerializationError,
        errors.DeserializationError,
        QueryError,
    ],
)
def test_all_errors_are_shown_in_one_sentence(kind: type[Exception]) -> None:
    """The form does not depend on the command that raises the error."""
    assert issubclass(kind, OttlaError)
    assert main.explain(kind("Sink out: a value is wrong.")) == "Sink out: a value is wrong"
