"""Scenarios of Scenarios.java with configured applications: exception handlers and caches."""

from collections.abc import Callable
from typing import Any

from ottla.streams import (
    Grouped,
    Materialized,
    Repartitioned,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
)
from ottla.streams.serdes import Serde
from ottla.streams.settings.handlers import (
    ExceptionHandlers,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndContinueProductionExceptionHandler,
)
from ottla.streams.task.task import TaskSettings
from tests.streams.recorded.topologies import append, empty, from_in, merge_text, out, reduce_text

_FAILING = ExceptionHandlers(
    LogAndContinueExceptionHandler(),
    LogAndContinueProcessingExceptionHandler(),
    LogAndContinueProductionExceptionHandler(),
    "out-dead",
)


def build_configured(name: str) -> Topology:
    """Return the topology of a scenario."""
    builder = StreamsBuilder()
    CONFIGURED[name](builder)
    return builder.build()


def settings(name: str) -> TaskSettings:
    """Return the settings of a scenario's application."""
    if name.startswith("failing_"):
        return TaskSettings("test", exception_handlers=_FAILING)
    return TaskSettings("test", statestore_cache_max_bytes=1 << 20)


def refusing(refused: str) -> Serde[str]:
    """Return a serde of text that rejects one value."""

    def check(value: str) -> str:
        if value == refused:
            raise ValueError("refused")
        return value

    return Serde(lambda value: check(value).encode(), lambda data: check(data.decode()))


def failing(value: Any) -> Any:
    """Raise an error for one value."""
    if value == "x":
        raise RuntimeError("refused")
    return value


def twice(value: Any) -> list[Any]:
    """Return each value twice, and nothing for a tombstone."""
    return [] if value is None else [value, value]


def _failing_processing(b: StreamsBuilder) -> None:
    filtered = from_in(b).map_values(failing).filter(lambda value: failing(value) != "b")
    filtered.group_by_key().count().to_stream().map_values(str).to("out")
    again = from_in(b).select_key(lambda value: value).repartition(Repartitioned.as_("again"))
    again.map_values(failing).to("out-again")


def _cached_aggregate(b: StreamsBuilder) -> None:
    def several(key: Any, value: Any) -> list[tuple[str, str]]:
        text = "null" if value is None else value
        return [] if key is None else [(key, text), ("z", text), (key, "2"), ("c", "3")]

    group = from_in(b).flat_map(several).group_by_key(Grouped.as_("group"))
    out(group.aggregate(empty, append, Materialized.as_("sums")))


def _cached_regrouped(b: StreamsBuilder) -> None:
    values = from_in(b).flat_map_values(lambda v: [] if v is None else [v, v + v])
    table = values.group_by_key().reduce(reduce_text, Materialized.as_("reduced"))
    group = table.group_by(lambda _key, value: (value[0], value), Grouped.as_("again"))
    out(group.count(Materialized.as_("lengths")))


CONFIGURED: dict[str, Callable[[StreamsBuilder], Any]] = {
    "failing_deserialization": lambda b: b.stream(
        "in", key=Serdes.string(), value=refusing("x")
    ).to("out"),
    "failing_processing": _failing_processing,
    "failing_production": lambda b: (
        from_in(b)
        .map_values(lambda v: "null!" if v is None else v + "!")
        .to("out", key=refusing("a"), value=refusing("x!"))
    ),
    "failing_table": lambda b: (
        b.table("in").filter(lambda value: failing(value) is not None).to_stream().to("out")
    ),
    "cached_count": lambda b: out(
        from_in(b)
        .flat_map_values(twice)
        .group_by(lambda value: value, Grouped.as_("by-value"))
        .count(Materialized.as_("counts"))
    ),
    "cached_aggregate": _cached_aggregate,
    "cached_regrouped": _cached_regrouped,
    "cached_table": lambda b: (
        b.table("in", materialized=Materialized.as_("table"))
        .filter(lambda value: value != "b")
        .to_stream()
        .to("out")
    ),
    "cached_windows": lambda b: out(
        from_in(b)
        .flat_map_values(twice)
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(10, 5).advance_by(5))
        .count(Materialized.as_("counts"))
    ),
    "cached_sessions": lambda b: out(
        from_in(b)
        .flat_map_values(twice)
        .group_by_key()
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace(5, 5))
        .aggregate(empty, append, merge_text, Materialized.as_("sums"))
    ),
}
