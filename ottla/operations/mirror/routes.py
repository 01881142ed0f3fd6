"""The topics of a mirror: source, target, and the topic on the target's cluster that keeps matching
offsets.

`ottla topic copy`, `kafka-mirror-maker` and the `mirror` sink of a pipeline share them, so that one
can continue what the other began.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin import configs, offsets, topics
from ottla.client.brokers import Brokers
from ottla.client.raw.consumer import EndOfPartition, RecordConsumer
from ottla.operations.mirror.translation import Point, Translation
from ottla.operations.offsets.resets import advance

POINTS_SUFFIX = ".mirror-offsets"
"""The end of the names of topics with matching offsets."""
_POINTS_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1"}
# Options that depend on a cluster, as in MirrorMaker 2 (DefaultConfigPropertyFilter).
_NOT_COPIED = frozenset({
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms", "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms", "message.timestamp.type", "unclean.leader.election.enable",
    "min.insync.replicas",
})  # fmt: skip
# Of each partition; older points are thinned out.
_POINTS_MAX = 10_000
_BATCH = 1000
_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Route:
    """One topic and its copy."""

    source: str
    target: str
    points_topic: str = ""

    @property
    def offsets_topic(self) -> str:
        """The topic with the matching offsets, on the target's cluster."""
        return self.points_topic or f"{self.target}{POINTS_SUFFIX}"


def prepare(source: Brokers, target: Brokers, route: Route) -> list[int]:
    """Create the target and its topic of offsets if they do not exist; return the partitions to
    copy.

    A new target has the number of partitions and the configuration of the source. Raises
    ConfigError if an existing one has fewer partitions, or is the source.
    """
    described = topics.describe_topic(source, route.source)
    count = len(described.partitions)
    if _create(target, route.target, count, {}, validate_only=True):
        resource = configs.Resource(configs.ResourceType.TOPIC, route.source)
        own = {
            entry.name: entry.value
            for entry in configs.describe_config(source, resource)
            if entry.source is configs.ConfigSource.DYNAMIC_TOPIC_CONFIG
            and entry.value is not None
            and entry.name not in _NOT_COPIED
        }
        _create(target, route.target, count, own)
    existing = topics.describe_topic(target, route.target)
    if _is_same(source, described, target, existing):
        raise ConfigError(
            f"source and target of {route.source!r} are the same topic: name another target or "
            "another cluster"
        )
    if len(existing.partitions) < count:
        raise ConfigError(
            f"topic {route.target!r} has {len(existing.partitions)} partitions and "
            f"{route.source!r} has {count}, but a copy keeps partitions: add some with "
            f"`ottla topic add-partitions {route.target} --total {count}`"
        )
    _create(target, route.offsets_topic, 1, _POINTS_CONFIG)
    return [row.partition for row in described.partitions]


def _is_same(source: Brokers, one: topics.Topic, target: Brokers, other: topics.Topic) -> bool:
    """Return True if it is one topic; brokers before Kafka 2.8 give topics no ids."""
    if one.name != other.name or any(one.topic_id) or any(other.topic_id):
        return one.name == other.name and one.topic_id == other.topic_id
    return source.metadata([]).cluster_id == target.metadata([]).cluster_id


def _create(
    brokers: Brokers,
    name: str,
    partitions: int,
    config: Mapping[str, str],
    *,
    validate_only: bool = False,
) -> bool:
    try:
        topics.create_topic(
            brokers, name, partitions=partitions, config=config, validate_only=validate_only
        )
    except ApiError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        return False
    if not validate_only:
        _await_created(brokers, [(name, number) for number in range(partitions)])
    return True


def _await_created(brokers: Brokers, partitions: list[tuple[str, int]]) -> None:
    """Wait until the brokers know the leaders of partitions that were just created."""

    def attempt() -> None:
        try:
            brokers.leaders(partitions)
        except ApiError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, str(error)) from error

    brokers.retry(attempt)


def read_points(
    target: Brokers, route: Route, cluster_id: str, start: int = 0
) -> tuple[list[Point], int]:
    """Return the committed points of a route from an offset on, as stored, and the offset of the
    next one. `cluster_id` is that of the source.
    """
    key = (route.offsets_topic, 0)
    earliest = offsets.list_offsets(target, {key: offsets.EARLIEST})[key].offset
    ends = offsets.list_offsets(
        target, {key: offsets.LATEST}, isolation_level=offsets.READ_COMMITTED
    )
    points: list[Point] = []
    end = ends[key].offset
    if max(earliest, start) >= end:
        return points, end
    settings = {
        **target.settings,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": "10",
    }
    with RecordConsumer(target.bootstrap, settings=settings) as consumer:
        consumer.assign({key: max(earliest, start)})
        while True:
            for record in consumer.poll(_POLL_S, limit=_BATCH):
                if isinstance(record, EndOfPartition):
                    return points, end
                point = Point.decode(route.source, record.key, record.value, cluster_id)
                if point is not None and record.offset < end:
                    points.append(point)
                if record.offset + 1 >= end:
                    return points, end


class Points:
    """The points of a route, and the translation that they define; bounded in memory."""

    def __init__(self, points: Iterable[Point]) -> None:
        self._points: dict[int, list[Point]] = {}
        for point in points:
            self.add(point)

    def add(self, point: Point) -> None:
        """Add the newest point of a partition."""
        known = self._points.setdefault(point.partition, [])
        known.append(point)
        if len(known) > _POINTS_MAX:
            half = len(known) // 2
            known[:half] = known[:half:2]

    def next_offset(self, partition: int) -> int | None:
        """Return the offset of the source at which copying resumes; None if it never began."""
        known = self._points.get(partition)
        return known[-1].source_offset if known else None

    def translation(self) -> Translation:
        """Return the translation of offsets."""
        return Translation(point for known in self._points.values() for point in known)


def translate_groups(
    source: Brokers, target: Brokers, routes: Mapping[Route, Points], names: Sequence[str]
) -> dict[str, int]:
    """Translate the committed offsets of groups and commit them for the same groups on the target.

    Offsets are never moved backwards, and a group with members there is left alone. Returns the
    number of partitions that were moved, by group.
    """
    translations = {route: points.translation() for route, points in routes.items()}
    is_own = source.bootstrap == target.bootstrap
    return {
        name: advance(target, name, translated(source, translations, name), is_own=is_own) or 0
        for name in names
    }


def translated(
    source: Brokers, translations: Mapping[Route, Translation], name: str
) -> dict[tuple[str, int], int]:
    """Return the offsets of the targets that match the committed offsets of a group."""
    by_topic = {route.source: (route.target, row) for route, row in translations.items()}
    targets: dict[tuple[str, int], int] = {}
    for (topic, partition), committed in offsets.committed_offsets(source, name).items():
        if topic in by_topic and committed.offset >= 0:
            target, translation = by_topic[topic]
            offset = translation.translate(partition, committed.offset)
            if offset is not None:
                targets[target, partition] = offset
    return targets
