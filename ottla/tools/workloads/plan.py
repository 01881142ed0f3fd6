"""The plan of a workload, read from TOML; a ConfigError names the table and the key that is wrong.
Pure.

    name = "kill the leader"
    duration = "20s"              # at most; it ends when the records are written and read

    [cluster]                     # or bootstrap = "host:port", for a workload without faults
    brokers = 3
    options = {"min.insync.replicas" = "2"}

    [topics.orders]
    partitions = 3
    replication_factor = 3

    [[produce]]                   # Trogdor's ProduceBench
    topic = "orders"
    records = 10000
    rate = 2000                   # records a second; no limit by default
    settings = {acks = "all"}

    [[consume]]                   # ConsumeBench; reads all records of the producers
    topic = "orders"
    group = "readers"

    [[fault]]
    at = "2s"
    action = "kill"               # kill, restart, pause, isolate, slow_disk, expire_session
    broker = "leader:orders:0"    # a number, "controller" or a leader
    for = "3s"                    # then it is undone

Not done: Trogdor's JSON, agents on several machines, its network, file system and process faults,
RoundTrip and ConnectionStress.
"""

import re
import reprlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ottla.base.errors import ConfigError
from ottla.base.options import is_digits

ACTIONS = ("kill", "restart", "pause", "isolate", "slow_disk", "expire_session")
_AT_ONCE = ("restart", "expire_session")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
_INT32_MAX = 2**31 - 1
_TARGET = re.compile(r"controller|leader:([\w.-]+)(?::([0-9]{1,9}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic that is created first."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducePlan:
    """A producer; `rate` is in records per second, 0 for no limit; `keys` is the number of keys."""

    topic: str
    records: int = 1000
    rate: float = 0.0
    value_bytes: int = 100
    keys: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumePlan:
    """A consumer that reads until it has all acknowledged records of the topic's producers."""

    topic: str
    group: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """A fault, in seconds after the start; `amount` is the delay of a slow disk in seconds."""

    at: float
    action: str
    broker: str
    lasts: float = 0.0
    amount: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPlan:
    """A whole workload; with `bootstrap` it runs against brokers that exist already."""

    name: str
    duration: float = 60.0
    bootstrap: str = ""
    brokers: int = 1
    options: Mapping[str, str] = field(default_factory=dict)
    topics: tuple[TopicPlan, ...] = ()
    produce: tuple[ProducePlan, ...] = ()
    consume: tuple[ConsumePlan, ...] = ()
    faults: tuple[FaultPlan, ...] = ()


def example_path() -> str:
    """Return the path of a file that has every key."""
    return str(Path(__file__).with_name("kill-the-leader.toml"))


def parse_plan(text: str, name: str = "the workload") -> WorkloadPlan:
    """Return the plan in a TOML text; `name` is the file's name, for errors."""
    try:
        return _parse(text)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def _parse(text: str) -> WorkloadPlan:
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ConfigError("its tables are nested too deeply") from None
    except ValueError as error:
        # Python refuses to convert thousands of digits.
        is_syntax = isinstance(error, tomllib.TOMLDecodeError)
        reason = str(error) if is_syntax else "a number is too large"
        raise ConfigError(f"this is not TOML: {reason}") from None
    root = _Table("the file", document)
    cluster = root.table("cluster")
    topics = root.table("topics")
    plan = WorkloadPlan(
        name=root.text("name", "workload"),
        duration=root.seconds("duration", 60.0),
        bootstrap=root.text("bootstrap", ""),
        brokers=cluster.number("brokers", 1, least=1),
        options=cluster.texts("options"),
        topics=tuple(_topic(name, topics.table(name)) for name in topics.names()),
        produce=tuple(map(_produce, root.tables("produce"))),
        consume=tuple(map(_consume, root.tables("consume"))),
        faults=tuple(sorted(map(_fault, root.tables("fault")), key=lambda item: item.at)),
    )
    cluster.close()
    root.close()
    _check(plan)
    return plan


def _check(plan: WorkloadPlan) -> None:
    if plan.bootstrap and (plan.faults or plan.brokers != 1 or plan.options):
        raise ConfigError("faults and [cluster] need a cluster of the workload: remove bootstrap")
    if not plan.produce and not plan.consume:
        raise ConfigError("the workload has neither [[produce]] nor [[consume]]: add one")
    written = {item.topic for item in plan.produce}
    for item in plan.consume:
        if item.topic not in written:
            raise ConfigError(
                f"[[consume]] reads topic {item.topic!r}, which no [[produce]] writes: add one"
            )
    for fault in plan.faults:
        if is_digits(fault.broker, 9) and not 1 <= int(fault.broker) <= plan.brokers:
            raise ConfigError(
                f"[[fault]] names broker {fault.broker}, but there are {plan.brokers}"
            )
        _check_leader(plan, fault)


def _check_leader(plan: WorkloadPlan, fault: FaultPlan) -> None:
    """Raise ConfigError for the leader of a partition that the workload does not have."""
    target = _TARGET.fullmatch(fault.broker)
    if target is None or not target[1]:
        return
    name, number = target[1], int(target[2] or 0)
    counts = {item.topic: number + 1 for item in plan.produce}
    counts |= {topic.name: topic.partitions for topic in plan.topics}
    if number >= counts.get(name, 0):
        raise ConfigError(
            f"[[fault]]: broker {fault.broker!r} names a partition that neither [topics] nor "
            "[[produce]] has"
        )


def _topic(name: str, table: "_Table") -> TopicPlan:
    plan = TopicPlan(
        name=name,
        partitions=table.number("partitions", 1, least=1),
        replication_factor=table.number("replication_factor", 1, least=1),
        config=table.texts("config"),
    )
    table.close()
    return plan


def _produce(table: "_Table") -> ProducePlan:
    plan = ProducePlan(
        topic=table.text("topic"),
        records=table.number("records", 1000, least=1),
        rate=float(table.number("rate", 0, least=0)),
        value_bytes=table.number("value_bytes", 100, least=20),
        keys=table.number("keys", 0, least=0),
        settings=table.texts("settings"),
    )
    table.close()
    return plan


def _consume(table: "_Table") -> ConsumePlan:
    plan = ConsumePlan(
        topic=table.text("topic"), group=table.text("group", ""), settings=table.texts("settings")
    )
    table.close()
    return plan


def _fault(table: "_Table") -> FaultPlan:
    action = table.text("action")
    if action not in ACTIONS:
        raise ConfigError(f"{table.name}: action {action!r} is not one of {', '.join(ACTIONS)}")
    plan = FaultPlan(
        at=table.seconds("at"),
        action=action,
        broker=table.broker(),
        lasts=0.0 if action in _AT_ONCE else table.seconds("for"),
        amount=table.seconds("delay") if action == "slow_disk" else 0.0,
    )
    table.close()
    return plan


class _Table:
    """The keys of one table; `close` refuses those that nothing has read."""

    def __init__(self, name: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise ConfigError(f"{name} must be a table")
        self.name = name
        self._values = values
        self._read: set[str] = set()

    def names(self) -> list[str]:
        """Return all keys, which are names of the user."""
        return list(self._values)

    def table(self, key: str) -> "_Table":
        """Return a nested table; an empty one if it is missing."""
        self._read.add(key)
        path = f"{self.name[1:-1]}.{key}" if self.name.startswith("[") else key
        return _Table(f"[{path}]", self._values.get(key, {}))

    def tables(self, key: str) -> "list[_Table]":
        """Return a list of tables."""
        self._read.add(key)
        items = self._values.get(key, [])
        if not isinstance(items, list):
            raise ConfigError(f"write [[{key}]] instead of [{key}]: there may be several")
        return [_Table(f"[[{key}]]", item) for item in items]

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise ConfigError(f"{self.name}: {key} must be a text, not {value!r}")
        if default is None and not value:
            raise ConfigError(f"{self.name}: {key} must not be empty")
        return value

    def number(self, key: str, default: int, *, least: int) -> int:
        """Return an integer of at least `least` that a request can contain."""
        value = self._get(key, default)
        if type(value) is not int or not least <= value <= _INT32_MAX:
            raise ConfigError(f"{self.name}: {key} must be an integer of at least {least} and at most {_INT32_MAX}, not {reprlib.repr(value)}")  # fmt: skip
        return value

    def seconds(self, key: str, default: float | None = None) -> float:
        """Return a duration such as 500ms, 10s or 2m in seconds."""
        value = self._get(key, default)
        if isinstance(value, float) and key not in self._values:
            return value
        parsed = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if parsed is None:
            raise ConfigError(f"{self.name}: {key} must be a duration such as 500ms or 10s, not {value!r}")  # fmt: skip
        return float(parsed.group(1)) * _SECONDS[parsed.group(2)]

    def texts(self, key: str) -> dict[str, str]:
        """Return a table of texts."""
        value = self._get(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise ConfigError(f"{self.name}: {key} must be a table of texts, not {value!r}")
        return value

    def broker(self) -> str:
        """Return the target of a fault."""
        target = str(self._get("broker", None))
        if not is_digits(target, 9) and _TARGET.fullmatch(target) is None:
            raise ConfigError(f"{self.name}: broker {target!r} must be a number, controller or leader:TOPIC:PARTITION")  # fmt: skip
        return target

    def close(self) -> None:
        """Raise ConfigError if a key was never read."""
        for key in self._values:
            if key not in self._read:
                known = ", ".join(sorted(self._read))
                raise ConfigError(f"{self.name}: {key} is not a key; known keys: {known}")

    def _get(self, key: str, default: Any) -> Any:
        self._read.add(key)
        value = self._values.get(key, default)
        if value is None:
            raise ConfigError(f"{self.name}: {key} is missing")
        return value
