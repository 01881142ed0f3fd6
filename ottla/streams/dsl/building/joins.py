"""Steps of joins of streams: with streams in windows, with tables and with global tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import NoneType, UnionType
from typing import Any

from ottla.streams.dsl.building.flows import (
    StreamFlow,
    TableFlow,
    name_repartition,
    repartition_node,
)
from ottla.streams.dsl.misplaced_serdes import refuse_serdes
from ottla.streams.expressions.arity import with_key
from ottla.streams.model.errors import TopologyError
from ottla.streams.model.names import check_name
from ottla.streams.model.windows import JoinWindows
from ottla.streams.operators.stateless import PassThrough
from ottla.streams.operators.stream_joins import JoinWindowed, StreamJoin
from ottla.streams.operators.table_joins import StreamTableJoin
from ottla.streams.operators.views import View
from ottla.streams.options.dsl_options import Named, name_of
from ottla.streams.options.joins import Joined, StreamJoined
from ottla.streams.serdes import Serde
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.topology.plan import OperatorNode

Joiner = Callable[[Any, Any, Any], Any]


def _repartitioned(
    flow: StreamFlow,
    prefix: str,
    key: Serde[Any] | None,
    value: Serde[Any] | None,
) -> StreamFlow:
    """Add a repartition topic to a stream; one that is named after the stream itself is reused."""
    graph = flow.graph
    serdes = key or flow.key, value or flow.value
    names = name_repartition(graph, prefix)
    shared = graph.shared_repartitions.get(flow.name)
    if shared is None or flow.name != prefix:
        node = repartition_node(names, flow.node, serdes)
        graph.add(node)
        shared = graph.shared_repartitions[flow.name] = node.name
    return StreamFlow(graph, names.source, shared, *serdes)


def join(
    flow: StreamFlow,
    other: StreamFlow | TableFlow | View,
    outer: tuple[bool, bool],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> StreamFlow:
    """Add a join with a stream, a table, or the view of a global table."""
    if isinstance(other, StreamFlow | TableFlow):
        flow.check_same(other)
    if isinstance(other, StreamFlow):
        joiner, windows, joined = _arguments_of(_STREAM, arguments, keywords)
        joins_two = with_key(joiner, 3, "a joiner")
        return join_streams(flow, other, joins_two, windows, outer, joined or StreamJoined())
    if outer[1]:
        raise TopologyError("an outer join of a stream needs another stream")
    if isinstance(other, TableFlow):
        joiner, joined = _arguments_of(_TABLE, arguments, keywords)
        return join_table(
            flow, other, with_key(joiner, 3, "a joiner"), outer[0], joined or Joined()
        )
    if isinstance(other, View):
        selector, joiner, named = _arguments_of(_GLOBAL_TABLE, arguments, keywords)
        selects = with_key(selector, 2, "a key selector")
        joins_two = with_key(joiner, 3, "a joiner")
        return join_global_table(flow, other, selects, joins_two, outer[0], name_of(named))
    raise TypeError(f"a stream is joined with a stream, a table or a global table, not {other!r}")


_Form = tuple[str, Sequence[str], type | UnionType]
_STREAM: _Form = "stream", ("joiner", "windows", "joined"), StreamJoined
_TABLE: _Form = "table", ("joiner", "joined"), Joined
_GLOBAL_TABLE: _Form = "global table", ("selector", "joiner", "named"), Named | str
_SERDES = {
    "stream": "joined=StreamJoined.with_(key, value, other_value)",
    "table": "joined=Joined.with_(key, value, other_value)",
    "global table": "builder.global_table(topic, key=…, value=…)",
}


def _arguments_of(form: _Form, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """Return the arguments of a join in their order. Raises TopologyError with the correct form."""
    kind, names, last = form
    refuse_serdes(keywords, f"a join with a {kind}", _SERDES[kind])
    named = {**dict(zip(names, arguments, strict=False)), **keywords}
    results = [named.get(name) for name in names]
    is_whole = len(arguments) <= len(names) and set(named) <= set(names)
    has_functions = all(argument is not None for argument in results[:-1])
    fits = "windows" not in named or isinstance(named["windows"], JoinWindows)
    if not (is_whole and has_functions and fits and isinstance(results[-1], last | NoneType)):
        raise TopologyError(
            f"a join with a {kind} is written (other, {', '.join(names[:-1])}), and optionally "
            f"{names[-1]}={_misplaced(kind, results, arguments)}"
        )
    return results


def _misplaced(kind: str, results: Sequence[Any], arguments: Sequence[Any]) -> str:
    """Return what is wrong with the windows of a join, if that is the mistake."""
    if kind != "stream":
        has_windows = any(isinstance(argument, JoinWindows) for argument in arguments)
        return f"; a {kind} has no windows: remove them" if has_windows else ""
    joiner, windows, _ = results
    if isinstance(joiner, JoinWindows):
        return "; the joiner comes before the windows"
    if windows is None:
        return f"; its windows are missing: add {_WINDOWS}"
    if isinstance(windows, JoinWindows):
        return ""
    return f"; its windows are {_WINDOWS}, not {windows!r}"


_WINDOWS = "JoinWindows.of_time_difference_with_no_grace(timedelta(minutes=5))"


def join_streams(
    left: StreamFlow,
    right: StreamFlow,
    joiner: Joiner,
    windows: JoinWindows,
    outer: tuple[bool, bool],
    options: StreamJoined,
) -> StreamFlow:
    """Add a windowed join; `outer` is whether left and right records without a match are kept."""
    name = options.name
    if left.repartition_required:
        prefix = left.name if name is None else f"{name}-left"
        left = _repartitioned(left, prefix, options.key, options.value)
    if right.repartition_required:
        prefix = right.name if name is None else f"{name}-right"
        right = _repartitioned(right, prefix, options.key, options.other_value)
    return _join(left, right, joiner, windows, outer, options)


def _join(
    left: StreamFlow,
    right: StreamFlow,
    joiner: Joiner,
    windows: JoinWindows,
    outer: tuple[bool, bool],
    options: StreamJoined,
) -> StreamFlow:
    graph, (left_outer, right_outer), base = left.graph, outer, options.store_name
    if base is not None:
        check_name(base, "a store")
    suffixes = (
        "-outer-this-join" if right_outer else "-this-join",
        "-outer-other-join" if left_outer else "-other-join",
    )
    name = options.name
    windowed = (
        graph.named(name, "KSTREAM-WINDOWED-", "-this-windowed"),
        graph.named(name, "KSTREAM-WINDOWED-", "-other-windowed"),
    )
    numbered = (
        graph.new_name("KSTREAM-OUTERTHIS-" if right_outer else "KSTREAM-JOINTHIS-"),
        graph.new_name("KSTREAM-OUTEROTHER-" if left_outer else "KSTREAM-JOINOTHER-"),
    )
    sides = numbered if name is None else (name + suffixes[0], name + suffixes[1])
    merged = graph.named(name, "KSTREAM-MERGE-", "-merge")
    store_names = numbered if base is None else (base + suffixes[0], base + suffixes[1])
    key = options.key or left.key or right.key
    values = options.value or left.value, options.other_value or right.value
    stores = tuple(
        _join_store(f"{store_name}-store", (key, value), windows, options, supplied)
        for store_name, value, supplied in zip(store_names, values, options.stores, strict=True)
    )
    if stores[0].name == stores[1].name:
        raise TopologyError(
            f"both stores of a join are named {stores[0].name!r}: give each supplied store a name of its own"
        )
    waiting = None
    if left_outer or right_outer:
        supplied = options.stores[0]
        store_name = _outer_store(supplied.name if supplied else base, numbered[0], right_outer)
        waiting = StoreBuilder(
            store_name,
            "outer_join",
            key,
            values[0],
            other_value=values[1],
            in_memory=stores[0].in_memory,
        )
    graph.add(OperatorNode(windowed[0], (left.node,), JoinWindowed(stores[0])))
    graph.add(OperatorNode(windowed[1], (right.node,), JoinWindowed(stores[1])))
    this_join = StreamJoin(windows, joiner, True, left_outer, stores[1], waiting)
    other_join = StreamJoin(windows, joiner, False, right_outer, stores[0], waiting)
    relaxed = left_outer or right_outer
    graph.add(OperatorNode(sides[0], (windowed[0],), this_join, takes_null_keys=relaxed))
    graph.add(OperatorNode(sides[1], (windowed[1],), other_join, takes_null_keys=relaxed))
    graph.add(OperatorNode(merged, sides, PassThrough()))
    graph.copartition(left.node, right.node)
    return StreamFlow(graph, merged, merged, key, None)


def _join_store(
    name: str,
    serdes: tuple[Serde[Any] | None, Serde[Any] | None],
    windows: JoinWindows,
    options: StreamJoined,
    supplied: StoreBuilder | None,
) -> StoreBuilder:
    retention_ms = windows.size_ms + windows.grace_period_ms
    in_memory = None if options.store_type is None else options.store_type.in_memory
    if supplied is not None:
        name, in_memory = supplied.name, supplied.in_memory
        description = supplied.kind, supplied.retention_ms, supplied.window_size_ms
        if description != ("join_window", retention_ms, windows.size_ms):
            raise TopologyError(
                f"store {name} does not fit its join: it must be Stores.persistent_window_store"
                f"({name!r}, {retention_ms}, {windows.size_ms}, retain_duplicates=True)"
            )
    return StoreBuilder(
        name,
        "join_window",
        *serdes,
        retention_ms,
        windows.size_ms,
        logging_enabled=options.logging_enabled,
        log_config=options.log_config,
        in_memory=in_memory,
    )


def _outer_store(base: str | None, numbered: str, right_outer: bool) -> str:
    """Return the name of the store that both sides share: Kafka's, or a supplied store's."""
    if base is not None:
        return base + ("-outer-shared-join" if right_outer else "-left-shared-join") + "-store"
    return f"KSTREAM-OUTERSHARED-{numbered[-10:]}-store"


def join_table(
    flow: StreamFlow, table: TableFlow, joiner: Joiner, left: bool, options: Joined[Any, Any]
) -> StreamFlow:
    """Add a join with a table."""
    graph = flow.graph
    if flow.repartition_required:
        prefix = flow.name if options.name is None else options.name
        flow = _repartitioned(flow, prefix, options.key, options.value)
    numbered = "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-"
    name = graph.named(options.name, numbered)
    buffer = None
    if options.grace_ms is not None:
        _check_history(table, options.grace_ms)
        serdes = options.key or flow.key, options.value or flow.value
        buffer = StoreBuilder(
            f"{name}-Buffer", "join_buffer", *serdes, retention_ms=options.grace_ms
        )
    view = table.view()
    operator = StreamTableJoin(view, joiner, left, None, buffer)
    graph.add(OperatorNode(name, (flow.node,), operator, view.stores, takes_null_keys=left))
    graph.copartition(flow.node, table.name)
    key = options.key or flow.key
    return replace(flow, name=name, node=name, key=key, value=None, repartition_required=False)


def _check_history(table: TableFlow, grace_ms: int) -> None:
    """Raise TopologyError unless a table is versioned with a history of at least the grace
    (KIP-923).
    """
    history_ms = table.graph.history_ms(table.name)
    if history_ms is None:
        raise TopologyError(
            f"a join with a grace of '{grace_ms}' ms needs a versioned table: keep the table in "
            "Materialized.as_(Stores.versioned(name, history))"
        )
    if grace_ms > history_ms:
        raise TopologyError(
            f"a join with a grace of '{grace_ms}' ms needs a longer history of its table: its store keeps a "
            f"history of '{history_ms}' ms"
        )


def join_global_table(
    flow: StreamFlow,
    view: View,
    selector: Callable[[Any, Any], Any],
    joiner: Joiner,
    left: bool,
    name: str | None,
) -> StreamFlow:
    """Add a join with a global table; `selector` returns the key to look up."""
    named = flow.graph.named(name, "KSTREAM-LEFTJOIN-")
    operator = StreamTableJoin(view, joiner, left, selector)
    node = OperatorNode(named, (flow.node,), operator, takes_null_keys=left)
    flow.graph.add(node)
    return replace(flow, name=named, node=named, value=None)
