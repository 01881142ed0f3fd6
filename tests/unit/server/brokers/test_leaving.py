"""Controlled shutdown: the attempts of a broker that stops."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import BrokerImage, ClusterImage
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.server.brokers import leaving
from ottla.server.current import Current

BACKOFF_SECONDS = 5.0


class Clock(RealClock):
    """Sleeping advances the time; `at` is called with the time after each sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: Callable[[float], None] = lambda _: None

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.at(self.now)
        await asyncio.sleep(0)


class Leaving:
    """A broker that stops; the controller on another broker does not respond."""

    def __init__(self) -> None:
        brokers = [BrokerImage(number, "h", 9090 + number) for number in (1, 2)]
        self.current = Current(
            image=ClusterImage().with_brokers(brokers), options=BROKER_OPTIONS.parse({})
        )
        self.clock, self.hurried = Clock(), asyncio.Event()
        self.asked_at: list[float] = []

    async def request(self, *_: Any) -> Any:
        self.asked_at.append(round(self.clock.now, 3))
        raise ApiError(ErrorCode.BROKER_NOT_AVAILABLE)

    async def leave(self) -> None:
        controller = SimpleNamespace(is_active=False, broker_epoch=7)
        await leaving.leave(
            1, self.current, cast(Any, controller), cast(Any, self), self.clock, self.hurried
        )


async def test_a_broker_tries_again_after_the_back_off() -> None:
    """The controller may be a broker that stops, too, and has a successor then."""
    broker = Leaving()
    await broker.leave()
    assert broker.asked_at == [0.0, 5.0, 10.0, 15.0]


async def test_a_broker_asks_a_new_controller_at_once() -> None:
    """The former one has stopped, so the back-off would only delay the stop of this broker."""
    broker = Leaving()

    def happen(now: float) -> None:
        if 1.0 <= now < 1.1:
            broker.current.image = broker.current.image.with_controller(1, 8)

    broker.clock.at = happen
    await broker.leave()
    assert broker.asked_at == pytest.approx([0.0, 1.0, 6.0, 11.0], abs=0.06)


@pytest.mark.parametrize("cause", ["alone", "hurried"])
async def test_a_broker_does_not_wait_for_an_attempt_that_is_futile(cause: str) -> None:
    """If the other brokers have stopped, no broker can take the leaders."""
    broker = Leaving()

    def happen(now: float) -> None:
        if now >= 1.0 and cause == "alone":
            broker.current.image = broker.current.image.with_brokers(removed=[2])
        elif now >= 1.0:
            broker.hurried.set()

    broker.clock.at = happen
    await broker.leave()
    assert broker.asked_at == [0.0]
    assert broker.clock.now == pytest.approx(1.0, abs=0.06)
