"""The placement of the replicas of new topics and partitions; pure except for its random start.

Leaders are assigned to the brokers in turn from a random start. The followers of a partition are at
a distance from the leader that grows with each round, so that two brokers do not share all their
partitions. With racks, brokers of different racks alternate, and a rack gets a second replica only
after each has one. Follows Kafka's AdminUtils.assignReplicasToBrokers and has the same results for
the same start.
"""

from collections.abc import Iterable, Mapping, Sequence

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import Rng

Assignment = dict[int, tuple[int, ...]]
# Brokers by id, with their rack or None.
Racks = Mapping[int, str | None]


def place_replicas(
    brokers: Racks,
    partitions: int,
    replication_factor: int,
    *,
    rng: Rng | None = None,
    start: int | None = None,
    first_partition: int = 0,
) -> Assignment:
    """Return replicas for `partitions` partitions from `first_partition` on, the leader first.

    `start` sets both the first leader (as an index into the sorted brokers) and the distance;
    without it, `rng` draws them. Racks are used only if every broker has one. Raises ApiError
    INVALID_PARTITIONS or INVALID_REPLICATION_FACTOR with the reason.
    """
    if partitions <= 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    if replication_factor > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers:"
            f" {len(brokers)}.",
        )
    assert (rng is None) != (start is None), "the start is either drawn or given"
    first = rng.below(len(brokers)) if rng is not None else start or 0
    shift = rng.below(len(brokers)) if rng is not None else start or 0
    has_racks = all(rack is not None for rack in brokers.values())
    line = alternate_racks(brokers) if has_racks else sorted(brokers)
    assignment = {}
    for number in range(first_partition, first_partition + partitions):
        if number > 0 and number % len(line) == 0:
            shift += 1
        leader = (number + first) % len(line)
        if has_racks:
            replicas = _with_racks(line, brokers, leader, shift, replication_factor)
        else:
            replicas = _without_racks(line, leader, shift, replication_factor)
        assert len(set(replicas)) == replication_factor, "a broker holds a partition once"
        assignment[number] = tuple(replicas)
    return assignment


def alternate_racks(brokers: Racks) -> list[int]:
    """Return the brokers in an order in which neighbours are in different racks, if possible."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(brokers[broker] or "", []).append(broker)
    racks = [by_rack[rack] for rack in sorted(by_rack)]
    line = []
    for index in range(max(map(len, racks), default=0)):
        line += [rack[index] for rack in racks if index < len(rack)]
    return line


def validate_assignment(assignment: Mapping[int, Sequence[int]], brokers: Iterable[int]) -> None:
    """Raise ApiError INVALID_REPLICA_ASSIGNMENT, with the reason, unless an assignment is valid.

    Partitions are numbered from 0 without a gap and have the same number of replicas, all of them
    on known brokers, each broker once.
    """
    reason = _refuse(assignment, set(brokers))
    if reason:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def _refuse(assignment: Mapping[int, Sequence[int]], brokers: set[int]) -> str:
    if sorted(assignment) != list(range(len(assignment))):
        return "partitions should be a consecutive 0-based integer sequence"
    for number, replicas in sorted(assignment.items()):
        if not replicas:
            return f"partition {number} has no replicas"
        if len(set(replicas)) != len(replicas):
            return f"partition {number} names a broker twice: {list(replicas)}"
        unknown = sorted(set(replicas) - brokers)
        if unknown:
            return f"partition {number} names brokers that are not running: {unknown}"
    if len({len(replicas) for replicas in assignment.values()}) > 1:
        return "All partitions should have the same number of replicas"
    return ""


def _position(leader: int, shift: int, index: int, count: int) -> int:
    # Never 0, so a follower is never its leader; a single broker has no followers.
    distance = 1 + (shift + index) % (count - 1)
    return (leader + distance) % count


def _without_racks(line: Sequence[int], leader: int, shift: int, factor: int) -> list[int]:
    count = len(line)
    return [line[leader]] + [
        line[_position(leader, shift, index, count)] for index in range(factor - 1)
    ]


def _with_racks(
    line: Sequence[int], brokers: Racks, leader: int, shift: int, factor: int
) -> list[int]:
    racks = len(set(brokers.values()))
    chosen = [line[leader]]
    chosen_racks = {brokers[line[leader]]}
    index = 0
    while len(chosen) < factor:
        broker = line[_position(leader, shift * racks, index, len(line))]
        index += 1
        rack_is_free = brokers[broker] not in chosen_racks or len(chosen_racks) == racks
        if rack_is_free and broker not in chosen:
            chosen.append(broker)
            chosen_racks.add(brokers[broker])
    return chosen
