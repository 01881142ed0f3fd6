"""The signs by which a registered process is believed to have ended."""

import asyncio
from typing import Any, cast

import pytest

from ottla.cluster.image import BrokerImage
from ottla.cluster.znodes import BrokerIdNode
from ottla.server.brokers.process_watch import (
    FIRST_SECONDS,
    REPEAT_SECONDS,
    Registration,
    wait_until_gone,
)
from ottla.server.current import Contacts

NOW_MS = 1_000_000


class Clock:
    """Virtual time that passes only in `sleep`."""

    def __init__(self) -> None:
        self.slept = 0.0

    def time_ms(self) -> int:
        return NOW_MS + int(self.slept * 1000)

    def monotonic(self) -> float:
        return self.slept

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        await asyncio.sleep(0)


class DeadNet:
    """Nothing listens anywhere."""

    async def connect(self, host: str, port: int, factory: object, tls: object) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")


def registration(age_seconds: float) -> Registration:
    return Registration(2, 7, "b2", 9092, NOW_MS - int(age_seconds * 1000))


@pytest.mark.parametrize(
    ("age_seconds", "is_reached", "waits"),
    [
        (60.0, False, 2 * REPEAT_SECONDS),
        (0.0, False, FIRST_SECONDS),
        (-60.0, False, FIRST_SECONDS),
        (0.0, True, 2 * REPEAT_SECONDS),
    ],
    ids=["old", "new", "clock ahead", "new, but reached before"],
)
async def test_refusal_is_believed_sooner_if_the_broker_must_listen(
    age_seconds: float, is_reached: bool, waits: float
) -> None:
    """A broker of Apache Kafka registers a moment before it listens."""
    clock, actual = Clock(), registration(age_seconds)
    contacts = Contacts(lambda: None)
    if is_reached:
        contacts.connected(2, actual)
    await wait_until_gone(cast(Any, DeadNet()), cast(Any, clock), actual, contacts)
    assert clock.slept == pytest.approx(waits, abs=2 * REPEAT_SECONDS)


def test_time_of_a_registration_is_read_from_its_node() -> None:
    """It does not distinguish two images: brokers are compared by their epochs."""
    broker = BrokerImage(1, "b1", 9092)
    data = BrokerIdNode.encode(broker, NOW_MS)
    decoded = BrokerIdNode.decode(1, data, 5)
    assert decoded.registered_ms == NOW_MS
    assert decoded == BrokerIdNode.decode(1, BrokerIdNode.encode(broker, 0), 5)
