"""The error that a user sees after a failed query."""

import pytest

from ottla.streams.model.errors import EngineBusyError
from ottla.streams.spark.query import failures
from ottla.streams.spark.query.failures import QueryError, explain, query_error

_OURS = failures.__file__
_TEXT = f"""[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted. SQLSTATE: XXKST
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown: Traceback (most recent call last):
  File "{_OURS}", line 12, in read
    yield record
  File "/home/me/app/flights.py", line 7, in delay
    return value["delay"]
           ~~~~~^^^^^^^^^
  File "/usr/lib/python3.11/site-packages/pyspark/worker.py", line 3, in main
    process()
my.package.DelayError: no delay
in this record
 SQLSTATE: 38000
\tat org.apache.spark.api.python.PythonRunner.read(PythonRunner.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:1)
"""


def test_the_error_and_the_users_frames_remain() -> None:
    """Frames of Java, Spark and this package are removed; the message keeps all lines."""
    assert explain(_TEXT).splitlines() == [
        "DelayError: no delay",
        "in this record",
        '  File "/home/me/app/flights.py", line 7, in delay',
        '    return value["delay"]',
        "           ~~~~~^^^^^^^^^",
    ]


def test_the_last_error_of_a_chain_is_shown() -> None:
    """It explains its cause."""
    cause = (
        'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n    g()\nValueError: 1\n'
    )
    text = f"{cause}\nThe above exception was the direct cause\n\n{_TEXT}"
    assert explain(text).startswith("DelayError: no delay\n")


def test_an_error_outside_python_is_shown_in_one_line() -> None:
    """Only the first line of Spark's own errors is kept."""
    text = "[CANNOT_LOAD] The checkpoint is gone. SQLSTATE: 42K03\n\tat org.apache.A.b(C.scala:1)\n"
    assert explain(text) == "[CANNOT_LOAD] The checkpoint is gone."


def test_an_error_of_the_client_is_one_sentence() -> None:
    """The name of its class is removed."""
    text = (
        "x\nTraceback (most recent call last):\n"
        "ottla.client.errors.NotReachable: nothing listens on 127.0.0.1:1\n"
    )
    assert explain(text) == "nothing listens on 127.0.0.1:1"


@pytest.mark.parametrize(
    "sentence",
    [
        "org.apache.spark.SparkException: Python worker failed to connect back.",
        "Timed out while waiting for the Python worker to connect back after 10000 ms",
    ],
)
def test_workers_that_do_not_start_are_explained(sentence: str) -> None:
    """The error says what to do, and that a retry may succeed."""
    error = query_error(f"Job aborted: {sentence}\n\tat org.apache.spark.A.b(C.scala:1)")
    assert isinstance(error, QueryError)
    assert isinstance(error, EngineBusyError)
    assert "machine is too busy or its memory is full: stop other programs" in str(error)
    assert "scala" not in str(error)
    assert not isinstance(query_error(_TEXT), EngineBusyError)
