"""A RecordProducer raises our errors."""

import gc
import os
from contextlib import suppress

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.errors import ClientError
from ottla.client.raw.producer import RecordProducer
from ottla.testing import Cluster


def test_error_of_a_broker_is_an_api_error(ottla_cluster: Cluster) -> None:
    """The next call raises it, and unsent records are dropped."""
    ottla_cluster.create_topic("small", config={"max.message.bytes": "200"})
    with (
        pytest.raises(ApiError, match=r"max\.message\.bytes") as caught,
        RecordProducer(ottla_cluster.bootstrap) as producer,
    ):
        producer.send("small", b"x" * 1000)
        producer.flush()
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_librdkafka_checks_its_settings() -> None:
    """The error for an unknown name has librdkafka's own message."""
    with pytest.raises(ClientError, match=r"no\.such"):
        RecordProducer("127.0.0.1:1", {"no.such": "x"})


@pytest.mark.parametrize("error", [None, BrokenPipeError()], ids=["", "error"])
def test_threads_end_with_the_block(error: Exception | None) -> None:
    """A process that ends while librdkafka's threads run may crash, and it does not collect garbage
    before.
    """
    gc.disable()
    try:
        before = set(os.listdir("/proc/self/task"))
        with suppress(BrokenPipeError), RecordProducer("127.0.0.1:1"):
            assert set(os.listdir("/proc/self/task")) - before
            if error is not None:
                raise error
        assert set(os.listdir("/proc/self/task")) - before == set()
    finally:
        gc.enable()
