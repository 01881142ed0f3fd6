"""Offsets of a group: every strategy of kafka-consumer-groups as a plan, its execution, its undo."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned

Key = tuple[str, int]


class Strategy(StrEnum):
    """The target of a reset, named as the options of kafka-consumer-groups."""

    TO_EARLIEST = "to-earliest"
    TO_LATEST = "to-latest"
    TO_CURRENT = "to-current"
    TO_OFFSET = "to-offset"
    SHIFT_BY = "shift-by"
    TO_DATETIME = "to-datetime"
    BY_DURATION = "by-duration"
    FROM_FILE = "from-file"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """A reset of a group.

    `partitions` selects them; `topics` selects all partitions of topics; without both, all
    committed partitions are meant. `offset` is for TO_OFFSET, `shift` for SHIFT_BY (negative:
    back), `timestamp_ms` for TO_DATETIME, `duration` for BY_DURATION (ISO 8601, "PT1H30M"), `offsets` for
    FROM_FILE, which is also the way to set each partition separately.
    """

    group_id: str
    strategy: Strategy
    topics: tuple[str, ...] = ()
    partitions: tuple[Key, ...] = ()
    offset: int | None = None
    shift: int | None = None
    timestamp_ms: int | None = None
    duration: str | None = None
    offsets: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetDifference:
    """A partition before and after the reset; None is no committed offset.

    `note` is empty, or says why the target differs from the request ("moved to the log start
    offset 120").
    """

    topic: str
    partition: int
    before: int | None
    after: int | None
    start_offset: int
    end_offset: int
    lag_before: int | None
    lag_after: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class OffsetPlan:
    """A dry run: all differences, also of unchanged partitions; `obstacle` is empty if it can run."""

    group_id: str
    strategy: Strategy
    differences: tuple[OffsetDifference, ...]
    obstacle: str
    planned_at_ms: int


class PlanOutdated(ValueError):
    """The offsets have changed since the plan was made: make it again."""


def plan_reset(connection: ClusterConnection, request: ResetRequest) -> OffsetPlan:
    """Return what a reset would do; changes nothing."""
    raise planned()


def execute(connection: ClusterConnection, plan: OffsetPlan) -> Change:
    """Commit (or delete) the offsets of a plan.

    Raises PlanOutdated if committed offsets differ from the plan's, and ApiError NON_EMPTY_GROUP if
    the group has members.
    """
    raise planned()


def plan_undo(connection: ClusterConnection, executed: OffsetPlan) -> OffsetPlan:
    """Return the plan that restores the offsets from before an executed plan."""
    raise planned()


def parse_csv(text: str) -> dict[Key, int]:
    """Return the offsets of lines `topic,partition,offset` (kafka-consumer-groups --from-file).

    ConfigError names the malformed line. Pure.
    """
    raise planned()


def to_csv(differences: Sequence[OffsetDifference]) -> str:
    """Return the planned offsets as lines `topic,partition,offset` (--export). Pure."""
    raise planned()
