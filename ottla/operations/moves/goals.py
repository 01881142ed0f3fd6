"""Assignments for the goals of a reassignment; deterministic and pure.

Replicas are in the order of preference: the first is the preferred leader.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ottla.base.errors import ConfigError
from ottla.operations.moves.plans import Assignment
from ottla.operations.moves.plans import TopicPartition as Key
from ottla.operations.moves.spreading import spread as spread_topics


@dataclass(frozen=True, slots=True)
class Layout:
    """The brokers that may have replicas, their racks, and the sizes of partitions in bytes."""

    brokers: tuple[int, ...]
    racks: Mapping[int, str | None] = field(default_factory=dict)
    sizes: Mapping[Key, int] = field(default_factory=dict)

    def rack_count(self, replicas: Sequence[int]) -> int:
        """Return the number of different racks; brokers without one count as one rack each."""
        return len({self.racks.get(broker) or f"broker {broker}" for broker in replicas})


def empty_brokers(current: Assignment, layout: Layout) -> Assignment:
    """Replace replicas on brokers outside the layout by the least loaded brokers of it."""
    load = _load(current, layout)
    targets: Assignment = {}
    for key in sorted(current, key=lambda key: (-layout.sizes.get(key, 0), key)):
        replicas = list(current[key])
        for index, broker in enumerate(replicas):
            if broker not in layout.brokers:
                replicas[index] = _choose(replicas, load, layout, key)
                load[replicas[index]] += 1
        targets[key] = tuple(replicas)
    return targets


def change_factor(current: Assignment, layout: Layout, factor: int) -> Assignment:
    """Add the least loaded brokers, or remove the last replicas, until there are `factor`."""
    if not 1 <= factor <= len(layout.brokers):
        raise ConfigError(
            f"a replication factor of {factor} is not possible with {len(layout.brokers)} brokers"
        )
    load = _load(current, layout)
    targets: Assignment = {}
    for key in sorted(current):
        replicas = list(current[key])
        while len(replicas) > factor:
            # The preferred leader stays; of the others the most loaded broker loses its replica.
            removed = max(replicas[1:], key=lambda broker: (load[broker], broker))
            replicas.remove(removed)
            load[removed] -= 1
        while len(replicas) < factor:
            replicas.append(_choose(replicas, load, layout, key))
            load[replicas[-1]] += 1
        targets[key] = tuple(replicas)
    return targets


def spread(current: Assignment, layout: Layout) -> Assignment:
    """Assign all partitions again, as kafka-reassign-partitions --generate does."""
    for (topic, number), replicas in sorted(current.items()):
        if len(replicas) > len(layout.brokers):
            raise ConfigError(
                f"{topic}-{number} has {len(replicas)} replicas, more than the "
                f"{len(layout.brokers)} brokers"
            )
    racks = {broker: layout.racks.get(broker) for broker in layout.brokers}
    return spread_topics(dict(sorted(current.items())), racks)


def balance(current: Assignment, layout: Layout) -> Assignment:
    """Move as few replicas as possible until brokers differ by at most one replica, then reorder
    replicas until they differ by at most one preferred leader, if the moves allow it.

    A move never reduces the number of racks of a partition.
    """
    targets = empty_brokers(current, layout)
    load = _load(targets, layout)
    by_broker: dict[int, set[Key]] = {broker: set() for broker in layout.brokers}
    for key, replicas in targets.items():
        for broker in replicas:
            by_broker[broker].add(key)
    is_moving = len(layout.brokers) > 1
    while is_moving:
        is_moving = _move_one(targets, load, by_broker, layout)
    _balance_leaders(targets, layout)
    return targets


def _move_one(
    targets: Assignment, load: Counter[int], by_broker: dict[int, set[Key]], layout: Layout
) -> bool:
    order = sorted(layout.brokers, key=lambda broker: (load[broker], broker))
    for highest in reversed(order):
        for lowest in order:
            if load[highest] - load[lowest] <= 1:
                break
            key = _movable(targets, by_broker[highest] - by_broker[lowest], layout, highest, lowest)
            if key is None:
                continue
            targets[key] = _replaced(targets[key], highest, lowest)
            load[highest] -= 1
            load[lowest] += 1
            by_broker[highest].remove(key)
            by_broker[lowest].add(key)
            return True
    return False


def _movable(
    targets: Assignment, keys: set[Key], layout: Layout, source: int, target: int
) -> Key | None:
    """Return the smallest partition whose replica may move; the leader stays if another can move."""
    allowed = [
        key
        for key in keys
        if layout.rack_count(_replaced(targets[key], source, target))
        >= layout.rack_count(targets[key])
    ]
    return min(
        allowed,
        key=lambda key: (layout.sizes.get(key, 0), targets[key][0] == source, key),
        default=None,
    )


def _balance_leaders(targets: Assignment, layout: Layout) -> None:
    """Reorder replicas, which copies nothing, until no exchange reduces the difference."""
    leaders = Counter({broker: 0 for broker in layout.brokers})
    leaders.update(replicas[0] for replicas in targets.values())
    has_changed = True
    while has_changed:
        has_changed = False
        for key in sorted(targets):
            first, *followers = targets[key]
            best = min(followers, key=lambda broker: (leaders[broker], broker), default=first)
            if leaders[first] - leaders[best] > 1:
                targets[key] = (best, *(broker for broker in targets[key] if broker != best))
                leaders[first] -= 1
                leaders[best] += 1
                has_changed = True


def _load(assignment: Assignment, layout: Layout) -> Counter[int]:
    load = Counter({broker: 0 for broker in layout.brokers})
    load.update(broker for replicas in assignment.values() for broker in replicas)
    return load


def _choose(replicas: Sequence[int], load: Counter[int], layout: Layout, key: Key) -> int:
    """Return the broker for another replica: in a new rack if possible, with the least load."""
    candidates = [broker for broker in layout.brokers if broker not in replicas]
    if not candidates:
        raise ConfigError(
            f"{key[0]}-{key[1]} has replicas on all selected brokers already: select more brokers"
        )
    remaining = [broker for broker in replicas if broker in layout.brokers]
    return min(
        candidates,
        key=lambda broker: (-layout.rack_count([*remaining, broker]), load[broker], broker),
    )


def _replaced(replicas: Sequence[int], old: int, new: int) -> tuple[int, ...]:
    return tuple(new if broker == old else broker for broker in replicas)
