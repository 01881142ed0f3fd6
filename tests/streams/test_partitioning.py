"""Joins of topics whose keys another client's partitioner placed, and how to fix them."""

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.streams import KTable, StreamsBuilder, Topology
from ottla.streams.layout.layout import Application, lay_out
from ottla.streams.task.task import TaskSettings, TopicRecord
from tests.streams.staged import STRINGS, StagedRun, partition_of

_PARTITIONS = 3
_CUSTOMERS = {f"c{number}": f"name-{number}" for number in range(20)}
_ORDERS = {f"o{number}": f"c{number % 20}" for number in range(60)}


def _crc32(key: bytes, count: int) -> int:
    """Return the partition of a key by librdkafka's default."""
    return zlib.crc32(key) % count


def _plain(builder: StreamsBuilder, topic: str) -> KTable[Any, Any]:
    return builder.table(topic)


def _repartitioned(builder: StreamsBuilder, topic: str) -> KTable[Any, Any]:
    return builder.stream(topic).repartition().to_table()


_ROOT = Path(__file__).resolve().parents[2]
_Read = Callable[[StreamsBuilder, str], KTable[Any, Any]]


def _foreign_key(read: _Read) -> Topology:
    builder = StreamsBuilder()
    orders, customers = builder.table("orders"), read(builder, "customers")
    joined = orders.join(customers, lambda order: order, lambda order, name: f"{order} is {name}")
    joined.to_stream().to("out")
    return builder.build()


def _by_key(read: _Read) -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream("orders").map(lambda key, customer: (customer, key))
    orders.join(read(builder, "customers"), lambda order, name: f"{order} of {name}").to("out")
    return builder.build()


def _written(topology: Topology, partitioner: Callable[[bytes, int], int]) -> set[tuple[Any, Any]]:
    """Write customers, partitioned by a function, then orders; return the results."""
    topics = {"orders": _PARTITIONS, "customers": _PARTITIONS}
    run = StagedRun(Application(topology, TaskSettings("test", STRINGS)), topics=topics)
    for topic, rows in (("customers", _CUSTOMERS), ("orders", _ORDERS)):
        batch: dict[tuple[str, int], list[TopicRecord]] = {}
        for key, value in rows.items():
            data = key.encode()
            record = TopicRecord(data, value.encode(), 0)
            batch.setdefault((topic, partitioner(data, _PARTITIONS)), []).append(record)
        run.run(batch)
    return {(each.key, each.value) for each in run.produced.get("out", [])}


@pytest.mark.parametrize("build", [_foreign_key, _by_key])
def test_join_misses_rows_of_another_partitioner(
    build: Callable[[_Read], Topology],
) -> None:
    """This is the reason of the warning: results are missing without an error."""
    complete = _written(build(_plain), partition_of)
    assert len(complete) == len(_ORDERS)
    assert len(_written(build(_plain), _crc32)) < len(complete)


@pytest.mark.parametrize("place", [partition_of, _crc32])
@pytest.mark.parametrize("build", [_foreign_key, _by_key])
def test_repartitioned_table_joins_rows_of_any_partitioner(
    build: Callable[[_Read], Topology], place: Callable[[bytes, int], int]
) -> None:
    """`builder.stream(topic).repartition().to_table()` sends each row to the task of its key."""
    assert _written(build(_repartitioned), place) == _written(build(_plain), partition_of)


def _counted_while_growing(
    partition_counts: tuple[int, ...], partitioner: Callable[[bytes, int], int]
) -> tuple[set[str], int]:
    """Write each key once with each number of partitions; return the last counts, and the number
    of misplaced keys.
    """
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count().to_stream().map_values(str).to("out")
    application = Application(builder.build(), TaskSettings("test", STRINGS))
    first, *_ = partition_counts
    claimed = [part.partitions for part in lay_out([application], {"in": first}).sub_topologies]
    run = StagedRun(application, topics={"in": first}, claimed=claimed)
    for count in partition_counts:
        run.set_partitions("in", count)
        batch: dict[tuple[str, int], list[TopicRecord]] = {}
        for number in range(40):
            key = b"k%d" % number
            batch.setdefault(("in", partitioner(key, count)), []).append(TopicRecord(key, b"x", 1))
        run.run(batch)
    last = {record.key: (record.value or b"").decode() for record in run.produced["out"]}
    return set(last.values()), run.misplaced


@pytest.mark.parametrize("place", [partition_of, _crc32])
def test_a_topic_with_a_multiple_of_its_partitions_keeps_the_state_of_its_keys(
    place: Callable[[bytes, int], int],
) -> None:
    """The task of a key is the same for any hash, and no warning is needed."""
    assert _counted_while_growing((2, 4, 8), place) == ({"3"}, 0)


def test_a_topic_placed_by_murmur2_keeps_the_state_of_its_keys_with_any_new_partitions() -> None:
    """Records go to the tasks that murmur2 chooses for their keys, where their state is."""
    assert _counted_while_growing((3, 4, 5), partition_of) == ({"3"}, 0)


def test_a_topic_placed_by_another_hash_is_reported_when_its_partitions_are_no_multiple() -> None:
    """The state of some keys is in another task, so their counts start again."""
    counts, misplaced = _counted_while_growing((3, 4), _crc32)
    assert counts == {"1", "2"}
    assert misplaced > 0


def _shown_and_shipped() -> list[Path]:
    """Return the files that create producers for users, or show how to."""
    folders = ("ottla", "demo", "examples", "docs")
    paths = [path for folder in folders for path in (_ROOT / folder).rglob("*.*")]
    return [_ROOT / "README.md", *(each for each in paths if each.suffix in (".py", ".md"))]


def test_own_producers_use_murmur2() -> None:
    """Every producer of librdkafka is configured with Kafka's partitioner."""
    makes = re.compile(
        r"(?:confluent_kafka|librdkafka)\.Producer\b|from confluent_kafka import .*Producer"
    )
    texts = {path: path.read_text(encoding="utf-8") for path in _shown_and_shipped()}
    making = {path.relative_to(_ROOT).as_posix() for path in texts if makes.search(texts[path])}
    assert {"README.md", "demo/flights.py", "ottla/client/transport.py"} <= making
    assert not {each for each in making if "murmur2_random" not in texts[_ROOT / each]}


def test_the_topology_of_the_page_can_be_built() -> None:
    """It repartitions a topic that is read."""
    page = (_ROOT / "docs/partitioning.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(from ottla.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "docs/partitioning.md", "exec"), names)
    text = str(names["builder"].build().describe())
    assert {"customers", "orders", "out"} <= set(re.findall(r"\w+", text))
