"""Scenarios of a simulated cluster as TOML files, and the schedule of faults that a seed draws.

    summary = "Brokers are killed and restarted."
    seconds = 12.0          # of faults; simulated, like all times
    flush_on_ack = false
    pause = [0.2, 2.0]      # between the beginnings of two faults
    [settings]              # of every broker
    "replica.lag.time.max.ms" = 1500
    [workers]
    idempotent = 2
    [targets]               # of faults: relative frequencies
    controller = 4
    [faults.kill]
    weight = 3
    seconds = [0.1, 8.0]    # until the fault is undone

Every field has a default except `summary`, `pause` and `faults`. For each seed about half of the
kinds of faults are left out, so that different seeds try different combinations.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from ottla.base.rng import Rng

KINDS = (
    "blackout",
    "clock_jump",
    "cut_incoming",
    "cut_outgoing",
    "disk_error",
    "expire_session",
    "full_disk",
    "isolate",
    "kill",
    "kill_all",
    "leave_ensemble",
    "leave_followers",
    "pause",
    "power_loss",
    "reset_connections",
    "slow_disk",
    "slow_network",
    "stop",
)
CONTROLLER = "controller"
# No scenario may allow a cluster more simulated time to recover after the last fault.
RECOVERY_SECONDS_MAX = 30.0
# The pause before every fourth fault, so that the next one meets the recovery from the former.
_BURST = (0.0, 0.3)
_LEADER = "leader "
_BROKER = "broker "


class Fault(NamedTuple):
    """One fault: begins `at` seconds after the start of the workload and lasts for `seconds`.

    `target` is "broker N", "controller" or "leader N" (of partition N); the last two are resolved
    when the fault begins. `amount` has a meaning that depends on the kind.
    """

    at: float
    kind: str
    target: str
    seconds: float
    amount: int = 0

    def __str__(self) -> str:
        """Return the fault as one line."""
        return f"{self.at:.3f} {self.kind} {self.target} for {self.seconds:.3f} ({self.amount})"


Schedule = tuple[Fault, ...]


@dataclass(frozen=True)
class FaultKind:
    """The faults of one kind: relative frequency, and the range of their duration in seconds."""

    weight: int
    seconds: tuple[float, float]


@dataclass(frozen=True)
class Workers:
    """The number of clients of each kind; the first, second and fourth count per partition."""

    idempotent: int = 1
    weak: int = 1
    transactional: int = 2
    consumers: int = 1
    members: int = 2
    # Of a group with the consumer protocol (KIP-848).
    consumer_members: int = 2
    movers: int = 0
    operators: int = 0


@dataclass(frozen=True)
class Targets:
    """The relative frequency with which a fault meets the controller, a leader, or any broker."""

    controller: int = 1
    leader: int = 3
    broker: int = 2


@dataclass(frozen=True)
class Scenario:
    """A cluster, its workload, and the faults that may happen to it."""

    summary: str
    pause: tuple[float, float]
    faults: Mapping[str, FaultKind]
    brokers: int = 3
    replicas: int = 3
    min_insync_replicas: int = 2
    partitions: int = 2
    seconds: float = 12.0
    flush_on_ack: bool = False
    recovery_seconds: float = RECOVERY_SECONDS_MAX
    settings: Mapping[str, str] = field(default_factory=dict)
    workers: Workers = Workers()
    targets: Targets = Targets()

    def schedule(self, rng: Rng) -> Schedule:
        """Draw a schedule of faults."""
        kinds = [kind for kind in self.faults if rng.below(2)]
        if not kinds:
            kinds = [list(self.faults)[rng.below(len(self.faults))]]
        lottery = [kind for kind in kinds for _ in range(self.faults[kind].weight)]
        faults: list[Fault] = []
        at = _between(rng, (0.0, self.pause[1]))
        while at < self.seconds:
            kind = lottery[rng.below(len(lottery))]
            seconds = _between(rng, self.faults[kind].seconds)
            fault = Fault(
                round(at, 3), kind, self._target(rng), round(seconds, 3), rng.below(2**31)
            )
            faults.append(fault)
            at += _between(rng, _BURST if rng.below(4) == 0 else self.pause)
        return tuple(faults)

    def _target(self, rng: Rng) -> str:
        targets = self.targets
        draw = rng.below(targets.controller + targets.leader + targets.broker)
        if draw < targets.controller:
            return CONTROLLER
        if draw < targets.controller + targets.leader:
            return f"{_LEADER}{rng.below(self.partitions)}"
        return f"{_BROKER}{1 + rng.below(self.brokers)}"


def _between(rng: Rng, limits: Sequence[float]) -> float:
    low, high = limits
    return low + (high - low) * rng.below(10_001) / 10_000


def number_in(target: str) -> int:
    """Return the number of a broker or of a partition in a target."""
    return int(target.rpartition(" ")[2])


def is_leader(target: str) -> bool:
    """Return True if the target is the leader of a partition."""
    return target.startswith(_LEADER)


def parse(text: str) -> Scenario:
    """Return the scenario in a TOML document; raises ValueError with a message."""
    document: dict[str, Any] = tomllib.loads(text)
    names = {declared.name for declared in fields(Scenario)}
    for name in document:
        if name not in names:
            raise ValueError(f"unknown field {name!r}; known are {', '.join(sorted(names))}")
    for name in ("summary", "pause", "faults"):
        if name not in document:
            raise ValueError(f"the field {name!r} is missing")
    faults: dict[str, FaultKind] = {}
    for kind, description in document.pop("faults").items():
        if kind not in KINDS:
            raise ValueError(f"unknown fault {kind!r}; known are {', '.join(KINDS)}")
        low, high = description["seconds"]
        faults[kind] = FaultKind(int(description.get("weight", 1)), (float(low), float(high)))
    low, high = document.pop("pause")
    settings = {name: str(value) for name, value in document.pop("settings", {}).items()}
    workers = Workers(**document.pop("workers", {}))
    targets = Targets(**document.pop("targets", {}))
    return Scenario(
        pause=(float(low), float(high)),
        faults=faults,
        settings=settings,
        workers=workers,
        targets=targets,
        **document,
    )


def load(path: Path) -> Scenario:
    """Return the scenario in a file; raises ValueError or OSError."""
    return parse(path.read_text(encoding="utf-8"))
