"""Topologies of the simulation, with the results of the test driver."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from ottla.base.rng import SeededRng
from ottla.streams import (
    JoinWindows,
    Serdes,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyTestDriver,
)
from ottla.streams.task.task import TopicRecord
from ottla.wire.records.murmur2 import murmur2

PARTITIONS, KEYS = 3, 6
TOPICS = ("in", "in-two", "other", "third")
Results = Mapping[bytes | None, Sequence[bytes | None]]
"""The values of each key, in order."""


class Arrival(NamedTuple):
    """A record of an input topic."""

    topic: str
    key: bytes
    value: bytes | None
    timestamp: int

    def partition(self, count: int) -> int:
        """Return the partition of the key."""
        return (murmur2(self.key) & 0x7FFFFFFF) % count


@dataclass(frozen=True)
class Case:
    """A topology; `topics` are its inputs."""

    make: Callable[[StreamsBuilder], None]
    topics: tuple[str, ...] = ("in",)
    is_live: bool = True
    """True if records arrive while the application runs. The order of inputs of a join is defined
    only for records that have arrived.
    """
    is_rekeyed: bool = False
    """True if records of several tasks meet in a repartition topic, in any order."""
    is_final: bool = False
    """True if only the last value of each key is the driver's."""
    partitions: int = PARTITIONS
    values: tuple[bytes | None, ...] = ()
    """The values of the records; by default, all are different."""

    def topology(self) -> Topology:
        """Return the topology."""
        builder = StreamsBuilder()
        self.make(builder)
        return builder.build()

    def arrivals(self, rng: SeededRng, count: int) -> list[Arrival]:
        """Return records with increasing timestamps; keys can have equal values."""
        rows, now = [], 1_000
        for number in range(count):
            now += 1 + rng.below(40)
            topic = self.topics[rng.below(len(self.topics))]
            if self.values:
                key = "abx"[rng.below(3)]
                value = self.values[rng.below(len(self.values))]
            else:
                key, value = f"k{rng.below(KEYS)}", f"{'abc'[rng.below(3)]}{number}".encode()
            rows.append(Arrival(topic, key.encode(), value, now))
        return rows

    def expected(self, arrivals: Sequence[Arrival]) -> Results:
        """Return the test driver's results: of each partition, or of all records together."""
        results: dict[bytes | None, list[bytes | None]] = defaultdict(list)
        is_one = self.is_rekeyed or self.is_final
        parts = (None,) if is_one else tuple(range(self.partitions))
        for part in parts:
            with TopologyTestDriver(
                self.topology(),
                default_key_serde=Serdes.string(),
                default_value_serde=Serdes.string(),
            ) as driver:
                for row in arrivals:
                    if part is None or row.partition(self.partitions) == part:
                        driver.pipe(row.topic, TopicRecord(row.key, row.value, row.timestamp))
                for record in driver.produced("out"):
                    results[record.key].append(record.value)
        return results


def _tail(_: str, value: str, total: str) -> str:
    count, _, values = total.partition(":")
    return f"{int(count) + 1}:{(values + value)[-12:]}"


def _tails(b: StreamsBuilder) -> None:
    table = b.stream("in").group_by_key().aggregate(lambda: "0:", _tail, materialized="tails")
    table.to_stream().to("out")


def _rekeyed(b: StreamsBuilder) -> None:
    stream = b.stream("in").select_key(lambda k, v: v[0])
    stream.group_by_key().count(materialized="counts").map_values(str).to_stream().to("out")


def _suppressed(b: StreamsBuilder) -> None:
    windows = TimeWindows.of_size_and_grace(timedelta(milliseconds=200), timedelta(0))
    counts = b.stream("in").group_by_key().windowed_by(windows).count()
    closed = counts.suppress(Suppressed.until_window_closes())
    stream = closed.to_stream().map(lambda k, v: (k.key, f"{k.window.start}={v}"))
    stream.to("out")


def _outer_joined(b: StreamsBuilder) -> None:
    windows = JoinWindows.of_time_difference_and_grace(
        timedelta(milliseconds=60), timedelta(milliseconds=10)
    )
    b.stream("in").outer_join(b.stream("other"), lambda a, z: f"{a}+{z}", windows).to("out")


def _table_joined(b: StreamsBuilder) -> None:
    b.stream("in").left_join(b.table("other"), lambda a, z: f"{a}+{z}").to("out")


CASES = {
    "tails": Case(_tails),
    "rekeyed": Case(_rekeyed, is_rekeyed=True),
    "suppressed": Case(_suppressed),
    "outer_joined": Case(_outer_joined, topics=("in", "other"), is_live=False),
    "table_joined": Case(_table_joined, topics=("in", "other"), is_live=False),
}
