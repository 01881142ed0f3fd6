"""Runs of a broker on a simulated machine."""

import asyncio
from collections.abc import Mapping

from ottla.testing.sim.nodes import node_on
from ottla.testing.sim.world import Machine


async def start(machine: Machine, settings: Mapping[str, str]) -> "asyncio.Task[None]":
    """Start a broker; return when clients are served, or when the machine has lost power.

    Keep the returned task: the task of an ended run would otherwise be garbage-collected while it
    waits.
    """

    async def live() -> None:
        node = node_on(machine, settings)
        await node.start()

    started = machine.start(live)
    died = asyncio.ensure_future(machine.is_off.wait())
    await asyncio.wait([started, died], return_when=asyncio.FIRST_COMPLETED)
    died.cancel()
    return started
