"""A RecordConsumer raises our errors."""

from unittest.mock import Mock

import pytest

from ottla.base.errors import ConfigError
from ottla.client import Consumer
from ottla.client.bootstrap import Address
from ottla.client.raw.consumer import RecordConsumer


def test_interrupt_that_the_binding_loses_is_raised() -> None:
    """While it reports that a broker is down, `consume` raises SystemError instead of Ctrl-C."""
    lost = SystemError("<method 'consume'> returned NULL without setting an exception")
    opened = Mock(consume=Mock(side_effect=lost))
    consumer = RecordConsumer("127.0.0.1:1", opened=lambda _: opened)
    with pytest.raises(KeyboardInterrupt) as caught:
        consumer.poll(1.0)
    assert caught.value.__cause__ is lost


def test_another_system_error_is_not_an_interrupt() -> None:
    """Python's own errors stay visible."""
    opened = Mock(consume=Mock(side_effect=SystemError("bad argument to internal function")))
    consumer = RecordConsumer("127.0.0.1:1", opened=lambda _: opened)
    with pytest.raises(SystemError, match="bad argument"):
        consumer.poll(1.0)


@pytest.mark.parametrize("group", ["", " ", "\t\n"])
def test_group_without_a_name_is_refused(group: str) -> None:
    """The binding of librdkafka would abort the process, without an exception."""
    with pytest.raises(ConfigError, match="is blank: name a group"):
        RecordConsumer("127.0.0.1:1", group_id=group)
    with pytest.raises(ConfigError, match="is blank: name a group"):
        Consumer(bootstrap_servers="127.0.0.1:1", group_id=group)


def test_unreachable_cluster_is_detected(free_port: Address) -> None:
    """Reads keep retrying, and the caller can check whether a broker is reachable."""
    with RecordConsumer(str(free_port)) as consumer:
        consumer.assign({("t", 0): 0})
        for _ in range(100):
            assert consumer.poll(0.1) == []
            if consumer.is_down:
                break
        assert consumer.is_down
