"""Applies the faults of a schedule to a simulated cluster, and undoes each after its time."""

import asyncio
import errno
from collections.abc import Callable, Sequence
from functools import partial

from ottla.base.rng import Rng
from ottla.testing.sim.cluster.brokers import CLIENTS, SimCluster
from ottla.testing.sim.cluster.scenario import CONTROLLER, Fault, Schedule, is_leader, number_in
from ottla.testing.sim.cluster.workers import STRICT
from ottla.testing.sim.coordination import HOST

Undo = Callable[[], None]
Links = list[tuple[str, str]]

CLOCK_JUMP_MS_MAX = 2 * 24 * 3_600_000
SLOWNESS_MAX = 200
NETWORK_SLOWNESS_MAX = 100
ROOM_BYTES_MAX = 4096
APPENDS_MAX = 200
# Between the ends of two brokers when all go down.
_APART_SECONDS = 0.02


class Nemesis:
    """The faults of one run; `applied` counts the faults that had an effect, by kind.

    With `loses_unflushed` a power loss may destroy acknowledged records of that broker. The power
    then fails only while all replicas are in sync: otherwise Kafka guarantees nothing.
    """

    def __init__(self, cluster: SimCluster, rng: Rng, *, loses_unflushed: bool) -> None:
        self._cluster = cluster
        self._rng = rng
        self._loses_unflushed = loses_unflushed
        self._cuts: list[Links] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._undo: dict[Fault, Undo] = {}
        self.applied: dict[str, int] = {}
        self._apply: dict[str, Callable[[Fault, int], Undo | None]] = {
            "blackout": self._blackout,
            "clock_jump": self._clock_jump,
            "cut_incoming": self._cut_incoming,
            "cut_outgoing": self._cut_outgoing,
            "disk_error": self._disk_error,
            "expire_session": self._expire_session,
            "full_disk": self._full_disk,
            "isolate": self._isolate,
            "kill": self._kill,
            "kill_all": self._kill_all,
            "leave_ensemble": self._leave_ensemble,
            "leave_followers": self._leave_followers,
            "pause": self._pause,
            "power_loss": self._power_loss,
            "reset_connections": self._reset_connections,
            "slow_disk": self._slow_disk,
            "slow_network": self._slow_network,
            "stop": self._stop,
        }

    def start(self, schedule: Schedule) -> None:
        """Begin the schedule now."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._play(fault)) for fault in schedule]

    async def _play(self, fault: Fault) -> None:
        clock = self._cluster.clock
        await clock.sleep(fault.at)
        broker_id = self._resolve(fault.target)
        if broker_id < 0:
            return
        undo = self._apply[fault.kind](fault, broker_id)
        if undo is None:
            return
        self._cluster.world.trace.record("fault", fault, broker_id)
        self.applied[fault.kind] = self.applied.get(fault.kind, 0) + 1
        self._undo[fault] = undo
        await clock.sleep(fault.seconds)
        del self._undo[fault]
        undo()

    def heal(self) -> None:
        """End the schedule and undo every fault."""
        for task in self._tasks:
            task.cancel()
        for undo in list(self._undo.values()):
            undo()
        self._undo.clear()

    def raise_failures(self) -> None:
        """Raise the first unexpected error of a fault."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    def _resolve(self, target: str) -> int:
        if target == CONTROLLER:
            return next(iter(self._cluster.controllers), -1)
        if is_leader(target):
            return self._cluster.leader(STRICT, number_in(target))
        return number_in(target)

    # -- the process ------------------------------------------------------------------------------

    def _kill(self, fault: Fault, broker_id: int) -> Undo | None:
        return self._take_down(broker_id, loses_power=False)

    def _power_loss(self, fault: Fault, broker_id: int) -> Undo | None:
        if self._loses_unflushed and self._cluster.problems():
            return None
        return self._take_down(broker_id, loses_power=True)

    def _take_down(self, broker_id: int, *, loses_power: bool) -> Undo | None:
        if broker_id not in self._cluster.nodes:
            return None
        self._cluster.take_down(broker_id, loses_power=loses_power)
        return lambda: self._cluster.keep_running(broker_id)

    def _kill_all(self, fault: Fault, broker_id: int) -> Undo | None:
        """Kill every broker within a moment."""
        return self._take_all_down(fault, loses_power=False)

    def _blackout(self, fault: Fault, broker_id: int) -> Undo | None:
        """Cut the power of every machine within a moment."""
        if self._loses_unflushed:
            return None
        return self._take_all_down(fault, loses_power=True)

    def _take_all_down(self, fault: Fault, *, loses_power: bool) -> Undo:
        """Take all brokers down, and later up again, one after the other in a random order each."""
        loop = asyncio.get_running_loop()
        cluster, order = self._cluster, list(self._cluster.ids)
        for index, broker_id in enumerate(shuffled(order, fault.amount)):
            down = partial(cluster.take_down, broker_id, loses_power=loses_power)
            loop.call_later(index * _APART_SECONDS, down)

        def undo() -> None:
            # Those that are still up go down first, if the fault is shorter than the blackout.
            settled = len(order) * _APART_SECONDS
            for index, broker_id in enumerate(shuffled(order, fault.amount // 1000)):
                later = settled + index * (fault.amount % 1000) / 1000
                loop.call_later(later, cluster.keep_running, broker_id)

        return undo

    def _stop(self, fault: Fault, broker_id: int) -> Undo | None:
        if not self._cluster.is_serving(broker_id):
            return None
        stopping = asyncio.get_running_loop().create_task(self._cluster.take_down_gently(broker_id))

        def undo() -> None:
            if not stopping.done():
                # A stop that takes too long ends with a kill.
                stopping.cancel()
                self._cluster.take_down(broker_id)
            self._cluster.keep_running(broker_id)

        return undo

    def _pause(self, fault: Fault, broker_id: int) -> Undo | None:
        if broker_id not in self._cluster.nodes:
            return None
        self._cluster.pause(broker_id)
        return lambda: self._cluster.resume(broker_id)

    # -- network and ensemble ---------------------------------------------------------------------

    def _isolate(self, fault: Fault, broker_id: int) -> Undo | None:
        """Cut off a broker from the other brokers and the ensemble, often from clients, too."""
        others = [*self._others(broker_id), HOST, *([CLIENTS] if fault.amount % 2 else [])]
        name = f"b{broker_id}"
        return self._cut([pair for other in others for pair in ((name, other), (other, name))])

    def _cut_outgoing(self, fault: Fault, broker_id: int) -> Undo | None:
        return self._cut([(f"b{broker_id}", other) for other in self._some(fault, broker_id)])

    def _cut_incoming(self, fault: Fault, broker_id: int) -> Undo | None:
        return self._cut([(other, f"b{broker_id}") for other in self._some(fault, broker_id)])

    def _leave_ensemble(self, fault: Fault, broker_id: int) -> Undo | None:
        name = f"b{broker_id}"
        return self._cut([(name, HOST), (HOST, name)])

    def _leave_followers(self, fault: Fault, broker_id: int) -> Undo | None:
        name = f"b{broker_id}"
        others = self._others(broker_id)
        return self._cut([pair for other in others for pair in ((name, other), (other, name))])

    def _others(self, broker_id: int) -> list[str]:
        return [host for host in self._cluster.hosts if host != f"b{broker_id}"]

    def _some(self, fault: Fault, broker_id: int) -> list[str]:
        """Return one other broker, all of them, or all of them and the ensemble."""
        others = self._others(broker_id)
        choice = fault.amount % 3
        if choice == 0:
            return [others[fault.amount // 3 % len(others)]]
        return others if choice == 1 else [*others, HOST]

    def _cut(self, links: Links) -> Undo:
        self._cuts.append(links)
        self._reconnect()

        def undo() -> None:
            self._cuts.remove(links)
            self._reconnect()

        return undo

    def _reconnect(self) -> None:
        """Restore all links except those that a fault still cuts."""
        network = self._cluster.world.network
        network.heal()
        for links in self._cuts:
            for source, target in links:
                network.partition([source], [target], both_ways=False)
        self._cluster.coordination.changed()

    def _reset_connections(self, fault: Fault, broker_id: int) -> Undo | None:
        for other in [*self._others(broker_id), CLIENTS]:
            self._cluster.world.network.reset(f"b{broker_id}", other)
        return lambda: None

    def _slow_network(self, fault: Fault, broker_id: int) -> Undo | None:
        """Delay all bytes between all hosts, so that other faults can interrupt short
        operations.
        """
        network = self._cluster.world.network
        network.slowness = float(2 + fault.amount % NETWORK_SLOWNESS_MAX)

        def undo() -> None:
            network.slowness = 1.0

        return undo

    def _expire_session(self, fault: Fault, broker_id: int) -> Undo | None:
        if not self._cluster.is_serving(broker_id):
            return None
        self._cluster.coordination.expire(f"b{broker_id}")
        return lambda: None

    # -- clock and disk ---------------------------------------------------------------------------

    def _clock_jump(self, fault: Fault, broker_id: int) -> Undo | None:
        jump_ms = fault.amount % (2 * CLOCK_JUMP_MS_MAX) - CLOCK_JUMP_MS_MAX
        clock = self._cluster.machine(broker_id).clock
        clock.move_wall(jump_ms)
        return lambda: clock.move_wall(-jump_ms)

    def _slow_disk(self, fault: Fault, broker_id: int) -> Undo | None:
        disk = self._cluster.machine(broker_id).files.disk
        disk.slowness = float(2 + fault.amount % SLOWNESS_MAX)

        def undo() -> None:
            disk.slowness = 1.0

        return undo

    def _full_disk(self, fault: Fault, broker_id: int) -> Undo | None:
        disk = self._cluster.machine(broker_id).files.disk
        disk.capacity_bytes = disk.used_bytes() + fault.amount % ROOM_BYTES_MAX

        def undo() -> None:
            disk.capacity_bytes = None

        return undo

    def _disk_error(self, fault: Fault, broker_id: int) -> Undo | None:
        if broker_id not in self._cluster.nodes:
            return None
        nth = 1 + fault.amount % APPENDS_MAX
        self._cluster.machine(broker_id).files.faults.fail("append", nth=nth, error=errno.EIO)
        return lambda: None


def shuffled(numbers: Sequence[int], number: int) -> list[int]:
    """Return the permutation of the numbers that `number` selects."""
    remaining, permutation = list(numbers), []
    while remaining:
        number, index = divmod(number, len(remaining))
        permutation.append(remaining.pop(index))
    return permutation
