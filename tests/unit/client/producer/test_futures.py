"""The future of `Producer.send`: those that wait for it have the result, whatever callbacks do."""

import threading
from concurrent.futures import wait
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.producer.futures import DeliveryFuture
from ottla.client.producer.options import ProducerErrors
from ottla.client.producer.serving import logged_errors
from ottla.client.records import unsent

REPORT = object()
FAILURE = ApiError(ErrorCode.MESSAGE_TOO_LARGE)


class Server:
    """The parts of ReportServer that a future uses when no thread waits in `result`."""

    def __init__(self) -> None:
        self.creation = threading.Lock()
        self.user_code = logged_errors("the callback of a record")


def future_of(on_delivery: Any = None) -> Any:
    """Return a future of a producer that sends nothing."""
    return DeliveryFuture.class_for(Server(), ProducerErrors())(on_delivery)  # type: ignore[arg-type]


def raising(*_: object) -> None:
    """Fail, as a callback of the user may."""
    raise RuntimeError("the user's own")


@pytest.mark.parametrize("error", [None, FAILURE])
def test_a_callback_that_raises_leaves_no_one_waiting(error: ApiError | None) -> None:
    """`concurrent.futures.wait` ends, and other callbacks are called."""
    future = future_of(raising)
    called: list[Any] = []
    future.add_done_callback(called.append)
    with pytest.raises(RuntimeError):
        future.finish(unsent("orders", 0), FAILURE) if error else future(None, REPORT)
    assert wait([future], 0).done == {future}
    assert called == [future]
    assert future.exception() is error


def test_an_interceptor_that_is_interrupted_leaves_no_one_waiting() -> None:
    """Ctrl-C in `on_acknowledgement` is raised after the callback and those that wait."""
    calls: list[Any] = []
    future = future_of(lambda *words: calls.append(words))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    future._observer = interrupted
    future.add_done_callback(calls.append)
    with pytest.raises(KeyboardInterrupt):
        future.finish(unsent("orders", 0), FAILURE)
    assert calls == [(None, FAILURE), future]
