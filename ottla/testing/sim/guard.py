"""Keeps Ottla's own code from the real clock, random numbers, sockets and threads in a simulation.

A test searches the source for such calls; this module catches indirect ones. Only calls from
`ottla` itself are rejected: the test runner and the standard library use the real world. So do
threads that were running before, such as the threads of clients that another test of the process
opened.
"""

import contextlib
import os
import random
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from typing import Any

from ottla.testing.sim.loop import SimulationBreach

_REFUSED: tuple[tuple[Any, str], ...] = (
    (time, "time"),
    (time, "time_ns"),
    (time, "monotonic"),
    (time, "monotonic_ns"),
    (time, "perf_counter"),
    (time, "sleep"),
    (os, "urandom"),
    (uuid, "uuid4"),
    (random, "random"),
    (random, "randrange"),
    (random, "shuffle"),
    (random, "SystemRandom"),
    (socket, "create_connection"),
    (threading.Thread, "start"),
)


@contextlib.contextmanager
def real_world_forbidden() -> Iterator[None]:
    """Make such calls raise SimulationBreach if they come from a module of Ottla."""
    originals = [(owner, name, getattr(owner, name)) for owner, name in _REFUSED]
    outside = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
    for owner, name, original in originals:
        setattr(owner, name, _guarded(name, original, outside))
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _guarded(
    name: str, original: Callable[..., Any], outside: Collection[int | None]
) -> Callable[..., Any]:
    def guarded(*arguments: Any, **options: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("ottla.") and threading.get_ident() not in outside:
            raise SimulationBreach(f"{caller} calls {name}: go through the ports")
        return original(*arguments, **options)

    return guarded
