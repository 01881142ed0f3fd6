"""An hour of history with a slow group, for pictures and charts."""

import math
import random
import threading

from ottla.base.clock import RealClock
from ottla.console.history.points import Kind, Period, Point, Subject
from ottla.console.server import ConsoleServer

_SEED = 16
_STEP_S, _STEPS = 10, 360
_BYTES = 120
# The group stops for ten minutes, and then reads a little faster than records are written.
_STOPPED = range(150, 210)
_SURPLUS = 0.175
_PATIENCE_S = 20.0


def add_an_hour(console: ConsoleServer) -> None:
    """Fill the hour before now in the history of the cluster, topic orders and group billing.

    The lag ends with the 40 records that the group really has. Waits for the first sample, which
    would otherwise be drawn amid the points.
    """
    history, connection = console.console.history, console.console.clusters.get("local")
    cluster, group = Subject(Kind.CLUSTER, ""), Subject(Kind.GROUP, "billing")
    deadline, pause = RealClock().monotonic() + _PATIENCE_S, threading.Event()
    now_s = connection.now_ms() // 1000
    while not history.read("local", group, Period.HOUR, now_s + 1):
        assert RealClock().monotonic() < deadline, "the console did not sample the cluster"
        pause.wait(0.02)
    noise = random.Random(_SEED)
    rates = [0.5 + 0.15 * math.sin(n / 19) + noise.uniform(-0.05, 0.05) for n in range(_STEPS)]
    reads = [
        0.0 if n in _STOPPED else rate + (_SURPLUS if n >= _STOPPED.stop else 0.0)
        for n, rate in enumerate(rates)
    ]
    lags = [0.0]
    for rate, read in zip(rates, reads, strict=True):
        lags.append(lags[-1] + (rate - read) * _STEP_S)
    written, points = 0.0, []
    for n, rate in enumerate(rates):
        at_s = now_s - (_STEPS - 1 - n) * _STEP_S
        written += rate * _STEP_S
        lag = max(0.0, lags[n + 1] - lags[-1] + 40) if n >= _STOPPED.start else 0.0
        records, size = int(written), int(written * _BYTES)
        for subject in (cluster, Subject(Kind.TOPIC, "orders")):
            points.append((subject, Point(at_s, records, size)))
        position = Point(at_s, int(written - lag), None, int(lag), round(lag / rate, 1))
        points.append((group, position))
    history.add("local", points)
