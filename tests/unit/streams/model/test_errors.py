"""Errors of streams are errors of Ottla: the command line tells them in a sentence, without our frames."""

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
def test_all_are_told_in_a_sentence(kind: type[Exception]) -> None:
    """Whatever verb raises them."""
    assert issubclass(kind, OttlaError)
    assert main.explain(kind("Sink out: a value is wrong.")) == "Sink out: a value is wrong"
