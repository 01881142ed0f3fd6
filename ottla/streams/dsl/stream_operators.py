"""Operators of streams that do not change the types of key and value, and branches."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

from ottla.streams.dsl.building import streams
from ottla.streams.dsl.building.flows import StreamFlow
from ottla.streams.dsl.misplaced_serdes import explains_serdes
from ottla.streams.expressions.arity import with_key
from ottla.streams.expressions.functions import V2, K, Of1, Of2, V
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.operators import stateless
from ottla.streams.options.dsl_options import (
    Branched,
    Name,
    Printed,
    Produced,
    Repartitioned,
    name_of,
    of_kind,
)
from ottla.streams.processor.api import StreamPartitioner, Supplier, TopicNameExtractor
from ottla.streams.serdes import Serde

S = TypeVar("S", bound="StreamOperators[Any, Any]")


@explains_serdes
class StreamOperators(SnakeCase, Generic[K, V]):
    """The operators of KStream that return a stream of the same key and value types."""

    _elsewhere = (
        (
            frozenset(("count", "reduce", "aggregate", "windowed_by", "cogroup")),
            "group it first, group_by_key().{0}(…) or group_by(…).{0}(…)",
        ),
        (frozenset(("suppress",)), "tables wait, streams do not"),
        (frozenset(("branch", "default_branch")), "split it first, split().{}(…)"),
        (frozenset(("through",)), "write to(topic) and read builder.stream(topic)"),
        (frozenset(("transform", "flat_transform")), "a Processor does it, process(…)"),
        (
            frozenset(("transform_values", "flat_transform_values")),
            "a FixedKeyProcessor does it, process_values(…)",
        ),
    )

    def __init__(self, flow: StreamFlow) -> None:
        self.flow = flow

    def _then(self, name: Name, prefix: str, operator: Supplier, **changes: Any) -> StreamFlow:
        named = self.flow.graph.named(name_of(name), f"KSTREAM-{prefix}-")
        return self.flow.then(named, operator, **changes)

    @overload
    def filter(self, predicate: Of1[V, object], named: Name = None) -> Self: ...
    @overload
    def filter(self, predicate: Of2[K, V, object], named: Name = None) -> Self: ...
    def filter(self, predicate: Any, named: Name = None) -> Self:
        """Keep the records that satisfy the predicate."""
        test = with_key(predicate, 2, "a predicate")
        return type(self)(self._then(named, "FILTER", stateless.Filter(test)))

    @overload
    def filter_not(self, predicate: Of1[V, object], named: Name = None) -> Self: ...
    @overload
    def filter_not(self, predicate: Of2[K, V, object], named: Name = None) -> Self: ...
    def filter_not(self, predicate: Any, named: Name = None) -> Self:
        """Drop the records that satisfy the predicate."""
        test = with_key(predicate, 2, "a predicate")
        return type(self)(self._then(named, "FILTER", stateless.Filter(test, negate=True)))

    @overload
    def peek(self, action: Of1[V, object], named: Name = None) -> Self: ...
    @overload
    def peek(self, action: Of2[K, V, object], named: Name = None) -> Self: ...
    def peek(self, action: Any, named: Name = None) -> Self:
        """Call an action with each record and pass the record on unchanged."""
        return type(self)(
            self._then(named, "PEEK", stateless.Peek(with_key(action, 2, "an action")))
        )

    @overload
    def foreach(self, action: Of1[V, object], named: Name = None) -> None: ...
    @overload
    def foreach(self, action: Of2[K, V, object], named: Name = None) -> None: ...
    def foreach(self, action: Any, named: Name = None) -> None:
        """Call an action with each record; this ends the stream."""
        operator = stateless.Peek(with_key(action, 2, "an action"), ends=True)
        self._then(named, "FOREACH", operator)

    def split(self, named: Name = None) -> "BranchedKStream[Self, K, V]":
        """Split the stream into branches; each record goes to the first branch whose predicate it
        satisfies.
        """
        return BranchedKStream(type(self), self.flow, streams.split(self.flow, name_of(named)))

    def merge(self, other: Self, named: Name = None) -> Self:
        """Merge two streams into one."""
        flow: Any = getattr(other, "flow", other)
        return type(self)(streams.merge(self.flow, flow, name_of(named)))

    def repartition(
        self,
        repartitioned: Repartitioned[K, V] | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        name: str | None = None,
        number_of_partitions: int | None = None,
        partitioner: StreamPartitioner | None = None,
    ) -> Self:
        """Write the stream to an internal repartition topic, partitioned by key, and read it back."""
        options = Repartitioned(key, value, name, number_of_partitions, partitioner)
        topic_options = of_kind(repartitioned, Repartitioned, "a repartition topic") or options
        return type(self)(streams.repartition(self.flow, topic_options))

    @overload
    def to(
        self,
        topic: str | TopicNameExtractor,
        produced: Produced[K, V] | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        partitioner: StreamPartitioner | None = None,
        named: Name = None,
    ) -> None: ...
    @overload
    def to(
        self: "StreamOperators[K, V2 | None]",
        topic: str | TopicNameExtractor,
        produced: Produced[K, V2] | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V2] | None = None,
        partitioner: StreamPartitioner | None = None,
        named: Name = None,
    ) -> None: ...
    def to(
        self,
        topic: str | TopicNameExtractor,
        produced: Produced[Any, Any] | None = None,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        partitioner: StreamPartitioner | None = None,
        named: Name = None,
    ) -> None:
        """Write the stream to a topic, or to the topic that a function of the record returns."""
        options = Produced(key, value, partitioner, name_of(named))
        streams.to(
            self.flow, topic, of_kind(produced, Produced, "how a topic is written") or options
        )

    def print(self, printed: Printed | None = None) -> None:
        """Print each record; this ends the stream. On a cluster the output is in the executors'
        logs.
        """
        options = of_kind(printed, Printed, "how records are printed")
        streams.print_records(self.flow, options or Printed())


class BranchedKStream(SnakeCase, Generic[S, K, V]):
    """A stream that is split into named branches."""

    def __init__(self, make: Callable[[StreamFlow], S], flow: StreamFlow, splitter: str) -> None:
        self._make = make
        self._flow = flow
        self._splitter = splitter
        self._branches: dict[str, S] = {}

    @overload
    def branch(
        self, predicate: Of1[V, object], branched: Branched[S] | str | None = None
    ) -> Self: ...
    @overload
    def branch(
        self, predicate: Of2[K, V, object], branched: Branched[S] | str | None = None
    ) -> Self: ...
    def branch(self, predicate: Any, branched: Branched[S] | str | None = None) -> Self:
        """Add a branch for the records that satisfy the predicate and no earlier one."""
        self._add(with_key(predicate, 2, "a predicate"), branched)
        return self

    def default_branch(self, branched: Branched[S] | str | None = None) -> dict[str, S]:
        """Add a branch for all remaining records; return the branches by name."""
        self._add(None, branched)
        return self._branches

    def no_default_branch(self) -> dict[str, S]:
        """Drop all remaining records; return the branches by name."""
        return self._branches

    def _add(self, predicate: Any, branched: Branched[S] | str | None) -> None:
        branch_options = Branched(branched) if isinstance(branched, str) else branched
        options: Branched[Any] = of_kind(branch_options, Branched, "a branch") or Branched()
        flow = streams.branch(self._flow, self._splitter, predicate, options.name)
        stream: S | None = self._make(flow)
        if options.consumer is not None and stream is not None:
            options.consumer(stream)
            return
        if options.chain is not None and stream is not None:
            stream = options.chain(stream)
        if stream is not None:
            self._branches[flow.name] = stream
