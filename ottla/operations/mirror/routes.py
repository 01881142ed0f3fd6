"""The topics of a mirror: source, target, and the topic on the target's cluster that keeps matching
offsets.

`ottla topic copy`, `kafka-mirror-maker` and the `mirror` sink of a pipeline share them.

Not done: a cycle through a topic of offsets with another name, or through a third cluster, is not
noticed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.operations.mirror.targets import (
    cluster_id,
    refuse_fewer_partitions,
    refuse_itself,
    refuse_smaller_records,
    target_options,
)
from ottla.operations.mirror.translation import Point, Translation, origin_of
from ottla.operations.offsets.groups import check_exists
from ottla.operations.offsets.resets import advance

POINTS_SUFFIX = ".mirror-offsets"
"""The end of the names of topics with matching offsets."""
_POINTS_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1"}
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


def prepare(
    source: Brokers, target: Brokers, route: Route, *, follows: bool, has_points: bool = True
) -> list[int]:
    """Create the target and its topic of offsets if they do not exist; return the partitions to
    copy.

    A new target has the number of partitions and the configuration of the source. Raises
    ConfigError if an existing one has fewer partitions, or is the source, or is mirrored to the
    source by a mirror that `follows`, too.
    """
    described = topics.describe_topic(source, route.source)
    count = len(described.partitions)
    if follows:
        _refuse_cycle(source, target, route)
    if _create(target, route.target, count, {}, validate_only=True):
        options = target_options(source, route.source, has_records=True, keeps_replication=False)
        _create(target, route.target, count, options)
    existing = topics.describe_topic(target, route.target)
    refuse_itself(source, described, target, existing)
    refuse_fewer_partitions(described, existing)
    refuse_smaller_records(source, route.source, target, route.target)
    if has_points:
        _create(target, route.offsets_topic, 1, _POINTS_CONFIG)
    return [row.partition for row in described.partitions]


def _refuse_cycle(source: Brokers, target: Brokers, route: Route) -> None:
    """Raise ConfigError if the source is a copy of the target, directly or through other topics of
    the two clusters: its records would be copied again and again.
    """
    clusters = {cluster_id(source): source, cluster_id(target): target}
    end = cluster_id(target), route.target
    pending, seen = [(cluster_id(source), route.source)], set[tuple[str, str]]()
    while pending:
        cluster, topic = at = pending.pop()
        if cluster not in clusters or at in seen:
            continue
        seen.add(at)
        origins = _origins(clusters[cluster], topic)
        if end in origins:
            raise ConfigError(
                f"{route.source!r} is a copy of {route.target!r}, so a mirror that follows would copy "
                f"its records again and again: if the other mirror has ended for good, delete its "
                f"topic {topic + POINTS_SUFFIX!r}"
            )
        pending += origins


def _origins(brokers: Brokers, topic: str) -> set[tuple[str, str]]:
    """Return cluster and name of the topics that a topic is a copy of, by its topic of offsets."""
    try:
        records, _ = _read_records(brokers, topic + POINTS_SUFFIX, 0)
    except ApiError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return set()
        raise
    origins = (origin_of(record.key) for record in records)
    return {origin for origin in origins if origin is not None}


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
    target: Brokers, route: Route, source_id: str, start: int = 0
) -> tuple[list[Point], int]:
    """Return the committed points of a route from an offset on, as stored, and the offset of the
    next one. `source_id` is the id of the source's cluster.
    """
    records, end = _read_records(target, route.offsets_topic, start)
    points = (Point.decode(route.source, row.key, row.value, source_id) for row in records)
    return [point for point in points if point is not None], end


def _read_records(brokers: Brokers, topic: str, start: int) -> tuple[list[ConsumedRecord], int]:
    """Return the committed records of a topic of offsets from an offset on, and its end."""
    key = (topic, 0)
    earliest = offsets.list_offsets(brokers, {key: offsets.EARLIEST})[key].offset
    ends = offsets.list_offsets(
        brokers, {key: offsets.LATEST}, isolation_level=offsets.READ_COMMITTED
    )
    records: list[ConsumedRecord] = []
    end = ends[key].offset
    if max(earliest, start) >= end:
        return records, end
    settings = {
        **brokers.settings,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": "10",
    }
    with RecordConsumer(brokers.bootstrap, settings=settings) as consumer:
        consumer.assign({key: max(earliest, start)})
        while True:
            for record in consumer.poll(_POLL_S, limit=_BATCH):
                if isinstance(record, EndOfPartition):
                    return records, end
                if record.offset < end:
                    records.append(record)
                if record.offset + 1 >= end:
                    return records, end


class Translated(NamedTuple):
    """The offsets of a group on the target, and the number of those that were moved."""

    offsets: dict[tuple[str, int], int]
    moved: int


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

    def last(self) -> dict[int, Point]:
        """Return the last point of each partition."""
        return {partition: known[-1] for partition, known in self._points.items()}

    def translation(self) -> Translation:
        """Return the translation of offsets."""
        return Translation(point for known in self._points.values() for point in known)


def refuse_recreated(target: Brokers, route: Route, points: Points) -> dict[int, int]:
    """Return the end of each partition of the target that has a point.

    Raises ConfigError if a point is after the end: the target was created again, and a copy that
    resumes there would lack all earlier records.
    """
    last = points.last()
    keys = {(route.target, partition): offsets.LATEST for partition in last}
    ends = {key[1]: row.offset for key, row in offsets.list_offsets(target, keys).items()}
    for partition, point in sorted(last.items()):
        if point.target_offset > ends[partition]:
            raise ConfigError(
                f"{route.target}-{partition} ends at offset {ends[partition]}, but the copy of "
                f"{route.source!r} had reached offset {point.target_offset}: the target was created "
                "again, and lacks the records before. To copy all records again, delete the "
                f"topic {route.offsets_topic!r}, too."
            )
    return ends


class PointsLog:
    """The points of one source on its targets, as they are written."""

    def __init__(self, target: Brokers, source_id: str) -> None:
        self._target, self._source_id = target, source_id
        # The offset of the next record in each topic of points, unless another mirror writes there.
        self._ends: dict[Route, int] = {}

    def new_points(self, route: Route) -> list[Point]:
        """Return the points of a route since the last call."""
        start = self._ends.get(route, 0)
        points, self._ends[route] = read_points(self._target, route, self._source_id, start)
        return points

    def has_other_writer(self, route: Route, written: list[int]) -> bool:
        """Return True if another mirror of this source has written points between those at the
        offsets `written`.
        """
        end = self._ends[route]
        if written == list(range(end, end + len(written))):
            self._ends[route] = max(written) + 1
            return False
        return len(self.new_points(route)) > len(written)


def missing_groups(source: Brokers, names: Iterable[str]) -> list[str]:
    """Return the groups that do not exist; requests that translate offsets report other errors."""
    missing = []
    for name in names:
        try:
            check_exists(source, name)
        except ApiError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                missing.append(name)
    return missing


def translate_group(
    source: Brokers, target: Brokers, routes: Mapping[Route, Points], name: str
) -> Translated:
    """Translate the committed offsets of a group and commit them for the same group on the target.

    Offsets are never moved backwards, and a group with members there is left alone.
    """
    translations = {route: points.translation() for route, points in routes.items()}
    targets = _translated(source, translations, name)
    is_own = source.bootstrap == target.bootstrap
    moved = advance(target, name, targets, is_own=is_own)
    return Translated({}, 0) if moved is None else Translated(targets, moved)


def _translated(
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
