"""The checkpoint folder of a query, and the file in it that records which topology owns it.

Spark's checkpoint contains state pages by store and task, and offsets by topic. Another topology
cannot use them. The first start of a query therefore writes the shape of the topology to the
folder, and every later start compares the shapes. Functions may change between starts; nodes,
topics, stores, windows and partition counts may not.
"""

import difflib
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from pyspark.sql import SparkSession

from ottla.base.errors import ConfigError
from ottla.streams.layout.layout import Layout, SubTopology
from ottla.streams.spark.connector.ranges import Offsets, from_json, to_json
from ottla.streams.spark.query.folders import HadoopFolder
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.topology.topology import (
    ProcessorNode,
    Sink,
    Source,
    TopologyNode,
    visible_stores,
)

_FILE = "ottla-topology.json"
_SHOWN = 8


def shape_of(layout: Layout) -> list[str]:
    """Return the properties of a layout that a checkpoint depends on, as readable lines."""
    lines: list[str] = []
    for number, sub_topology in enumerate(layout.sub_topologies):
        name = sub_topology.application.settings.application_id
        lines.append(
            f"sub-topology {number} of {name}: stage {sub_topology.level}, {sub_topology.partitions} partitions"
        )
        lines += [f"  {_node(sub_topology, node)}" for node in sub_topology.topology.nodes.values()]
        stores = {**sub_topology.topology.stores, **sub_topology.topology.global_stores}
        # Hidden stores are left out: a checkpoint without one is read as if that store were empty.
        lines += [f"  {_store(stores[name])}" for name in visible_stores(sub_topology.topology)]
    lines += [f"shuffle {topic} to {target}" for topic, target in sorted(layout.shuffled.items())]
    return lines


def _node(sub_topology: SubTopology, node: TopologyNode) -> str:
    if isinstance(node, Source):
        return f"source {node.name} of {', '.join(node.topics) or node.pattern}"
    if isinstance(node, Sink):
        topic = node.topic if isinstance(node.topic, str) else "a function's topics"
        return f"sink {node.name} to {topic}, below {', '.join(node.parents)}"
    assert isinstance(node, ProcessorNode)
    stores = ", ".join(visible_stores(sub_topology.topology, node.name)) or "no store"
    return f"processor {node.name} with {stores}, below {', '.join(node.parents)}"


def _store(store: StoreBuilder) -> str:
    properties = {field_.name: getattr(store, field_.name) for field_ in fields(store)}
    left_out = ("name", "kind", "logging_enabled", "caching_enabled", "is_hidden")
    facts = (f"{name} {value!r}" for name, value in properties.items() if name not in left_out)
    return f"store {store.name}: {store.kind}, {', '.join(facts)}"


@dataclass(frozen=True)
class CheckpointOwner:
    """The settings a checkpoint was created with: shuffle partitions, and explicit starting
    offsets.

    `starts` has only the partitions that the query did not read from their beginning.
    """

    shuffle_partitions: int
    starts: Offsets


class Checkpoint:
    """A checkpoint folder, on any file system that Spark can access."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.location = location
        self._folder = HadoopFolder(spark, location)

    def partitions(self) -> list[int]:
        """Return the number of partitions of each sub-topology with state here; empty for a new
        checkpoint.
        """
        document = self._read()
        return [] if document is None else [int(count) for count in document.get("partitions", ())]

    def claim(
        self, layout: Layout, shuffle_partitions: int, find_starts: Callable[[], Offsets]
    ) -> CheckpointOwner:
        """Claim the checkpoint for a topology, and return the settings it was created with.

        These may differ from the arguments, which only a new checkpoint stores. Raises ConfigError
        if the checkpoint belongs to another topology.
        """
        shape = shape_of(layout)
        document = self._read()
        if document is None:
            partitions = [sub_topology.partitions for sub_topology in layout.sub_topologies]
            document = {"shape": shape, "partitions": partitions}
            starts = find_starts()
            document |= {"starts": to_json(starts), "shuffle_partitions": shuffle_partitions}
            self._write(document)
            return CheckpointOwner(shuffle_partitions, starts)
        if document["shape"] != shape:
            raise ConfigError(_refusal(self.location, document["shape"], shape))
        return CheckpointOwner(
            int(document["shuffle_partitions"]), from_json(document.get("starts", {}))
        )

    def _read(self) -> dict[str, Any] | None:
        text = self._folder.read(_FILE)
        return None if text is None else json.loads(text)

    def _write(self, document: dict[str, Any]) -> None:
        self._folder.write(_FILE, json.dumps(document, indent=1))


def _refusal(location: str, before: list[str], now: list[str]) -> str:
    changes = [
        line
        for line in difflib.unified_diff(before, now, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    first_changes = "\n".join(f"  {line}" for line in changes[:_SHOWN])
    remainder = f"\n  and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return (
        f"The checkpoint {location} belongs to a topology of another shape, and its state cannot be used:\n"
        f"{first_changes}{remainder}\n"
        "Start again, with `ottla streams reset` or another application_id, or run the previous topology "
        "until it has processed its input."
    )
