"""One turn of a contender: fill the state, process a known number of records, then some records one
by one.

The records of the first two parts are written while the contender is paused, so that all start with
the same backlog and none pays for writing it. The end is the time at which the broker appended its
last record. The output is read back: only contenders with the right results have figures.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Producer

from bench.servers import Server
from bench.streams_contenders import Contender
from bench.streams_input import (
    PARTITIONS,
    VALUE_BYTES,
    Input,
    each_key_once,
    name_of,
    random_keys,
)
from bench.streams_orders import Order
from bench.streams_topologies import WITHOUT_STATE
from ottla.client.admin.offsets import LATEST, list_offsets
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers

_POLL_S = 0.1
_QUIET_S = 1.5
_PATIENCE_S = 240.0
_QUIET_PATIENCE_S = 100.0
_WARM_LEAST = 20_000
# A contender is idle if it uses less than this fraction of a core in so many checks.
_AT_REST = 0.4
_SETTLE_S = 0.5
_SETTLE_LOOKS = 20
_PROBES = 1000
_PROBE_INTERVAL_S = 0.005
_COUNTS = ("count", "windowed_count", "processor")


class Refused(Exception):
    """Raised if a contender has a wrong result, or none in time."""


class Setting(NamedTuple):
    """A topology with its number of keys and records."""

    topology: str
    keys: int
    records: int


@dataclass
class Figures:
    """The figures of a turn."""

    records: int
    seconds: float
    rate: float
    cpu_us: float
    broker_us: float
    memory_mb: float
    first_output_s: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None


class Output:
    """The output of a contender: how many records there are, and whether they are right."""

    def __init__(self, brokers: Brokers, bootstrap: str, topic: str, topology: str) -> None:
        self._brokers = brokers
        self._bootstrap = bootstrap
        self._topic = topic
        self._counts = topology in _COUNTS
        self._read_to = dict.fromkeys(range(PARTITIONS), 0)
        self._last: pa.Table | None = None
        self.latest = 0.0
        """When the brokers took the last record, of those that were read."""

    def ends(self) -> dict[int, int]:
        """Return the end offsets of the partitions."""
        requested = {(self._topic, number): LATEST for number in range(PARTITIONS)}
        offsets = list_offsets(self._brokers, requested)
        return {partition: response.offset for (_, partition), response in offsets.items()}

    def written(self) -> int:
        """Return the number of records."""
        return sum(self.ends().values())

    def new(self) -> pa.Table:
        """Return the output since the last call: key, value, and append time in ms."""
        ends = self.ends()
        table = read_table(
            self._topic,
            bootstrap=self._bootstrap,
            columns=["key", "value", "timestamp"],
            start=self._read_to,
            end=ends,
        )
        self._read_to = ends
        times = table.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        rows = pa.table({"key": table["key"], "value": table["value"], "time": times})
        if rows.num_rows:
            self.latest = pc.max(times).as_py() / 1000
            if self._counts:
                self._remember(rows)
        return rows

    def _remember(self, table: pa.Table) -> None:
        numbers = _numbers(table.column("value"))
        rows = pa.table({"key": table.column("key"), "number": numbers})
        rows = pa.concat_tables([rows, self._last]) if self._last is not None else rows
        # A count only grows, so that its largest value is the last one.
        last = rows.group_by("key").aggregate([("number", "max")])
        self._last = pa.table({"key": last.column("key"), "number": last.column("number_max")})

    def counted(self) -> int:
        """Return the sum of the last counts of all keys."""
        return 0 if self._last is None else int(pc.sum(self._last.column("number")).as_py())


def _numbers(values: pa.ChunkedArray) -> pa.Array:
    """Return counts that were written as eight bytes or as text."""
    whole = values.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    if whole[0].as_py()[:1] == b"\0":
        packed = b"".join(whole.to_pylist())
        return pa.array(np.frombuffer(packed, ">i8").astype(np.int64))
    return whole.cast(pa.string()).cast(pa.int64())


class Turn:
    """One contender with one setting."""

    def __init__(self, contender: Contender, server: Server, setting: Setting) -> None:
        self._contender = contender
        self._server = server
        self._setting = setting
        self._part = contender.share(setting.topology, setting.keys)

    def run(self) -> Figures:
        """Return the figures. Raises Refused if the result is wrong."""
        topology, keys, _ = self._setting
        with Brokers(self._server.bootstrap) as brokers:
            input = Input(brokers, keys)
            self._given = input
            self._output = Output(brokers, self._server.bootstrap, input.names.sink, topology)
            try:
                return self._measure()
            finally:
                input.delete()

    def _measure(self) -> Figures:
        topology, keys, records = self._setting
        inputs, names = self._given, self._given.names
        inputs.fill_table()
        warm = max(_WARM_LEAST, keys) if topology not in WITHOUT_STATE else records // 3
        inputs.fill(each_key_once(keys, max(2000, int(warm * self._part))))
        is_fresh = not self._contender.processes
        self._contender.start(
            Order(topology, names.application, names.source, names.table, names.sink)
        )
        try:
            first = self._await_first()
            self._await(lambda: self._is_right(0, 0))
            self._output.new()
            self._settle()
            figures = self._rate(int(records * self._part))
            figures.first_output_s = first if is_fresh else None
            figures.p50_ms, figures.p99_ms = self._latency()
            return figures
        finally:
            self._contender.stop()

    def _await_first(self) -> float:
        """Wait for the first record; return the time since the contender's start."""
        begin = time.time()
        while not self._output.written():
            self._contender.check()
            if time.time() - begin > _QUIET_PATIENCE_S:
                raise Refused(f"wrote nothing: {self._contender.log()}")
            time.sleep(_POLL_S)
        return time.time() - self._contender.begun

    def _settle(self) -> None:
        """Wait until the contender is idle: after a commit, and after its compiler has finished."""
        for _ in range(_SETTLE_LOOKS):
            before = self._contender.cpu_seconds()
            time.sleep(_SETTLE_S)
            if self._contender.cpu_seconds() - before < _AT_REST * _SETTLE_S:
                return

    def _is_right(self, written_before: int, records_before: int) -> bool:
        """Return True if the output has all results of the records so far, or of those since."""
        topology = self._setting.topology
        if topology in WITHOUT_STATE:
            return self._output.written() == self._given.passing
        if self._contender.emits_every_update(topology):
            records = self._given.records - records_before
            return self._output.written() - written_before >= records
        self._output.new()
        return self._output.counted() >= self._given.records

    def _await(
        self, is_done: Callable[[], bool], *, watch: Callable[[], None] | None = None
    ) -> None:
        """Wait until the output is complete. Raises Refused if that takes too long; calls `watch`
        while it waits.

        If the number of records is not sufficient, the output is read while the contender is idle.
        """
        begin = changed = time.monotonic()
        before = -1
        looks = not self._contender.emits_every_update(self._setting.topology)
        while True:
            if watch is not None:
                watch()
            written, now = self._output.written(), time.monotonic()
            if written != before:
                before, changed = written, now
            if (not looks or now - changed > _QUIET_S) and is_done():
                return
            if now - begin > _PATIENCE_S or now - changed > _QUIET_PATIENCE_S:
                raise Refused(f"{written:,} records were written in {now - begin:.0f} s")
            self._contender.check()
            time.sleep(_POLL_S)

    def _latency(self) -> tuple[float, float]:
        """Return the median and the 99th percentile of the time from a record to its result, in ms.

        Only the second thousand of records counts: the first micro-batches are small and not
        compiled yet.
        """
        self._probed()
        return self._probed()

    def _probed(self) -> tuple[float, float]:
        output, sent = self._output, {}
        output.new()
        expected = output.written() + _PROBES
        producer = Producer({"bootstrap.servers": self._server.bootstrap, "linger.ms": 0})
        value = b"a" * VALUE_BYTES
        due = time.time()
        for key in each_key_once(self._setting.keys, _PROBES).tolist():
            due += _PROBE_INTERVAL_S
            time.sleep(max(0.0, due - time.time()))
            name = name_of(key)
            sent[name] = time.time()
            topic, partition = self._given.names.source, key % PARTITIONS
            producer.produce(topic, value, name, partition, timestamp=int(sent[name] * 1000))
            producer.poll(0)
        producer.flush(30)
        self._await(lambda: output.written() >= expected)
        rows = output.new()
        took = [
            came / 1000 - sent[name.partition(b"@")[0]]
            for name, came in zip(
                rows.column("key").to_pylist(), rows.column("time").to_pylist(), strict=True
            )
        ]
        p50, p99 = np.percentile(took, [50, 99]).tolist()
        return p50 * 1000, p99 * 1000

    def _rate(self, records: int) -> Figures:
        contender, inputs, output = self._contender, self._given, self._output
        written, known, passing = output.written(), inputs.records, inputs.passing
        samples: list[tuple[float, float, float]] = []

        def watch() -> None:
            samples.append((time.time(), contender.cpu_seconds(), self._server.cpu_seconds()))

        with contender.held_still():
            inputs.fill(random_keys(self._setting.keys, records))
            memory = contender.memory_mb()
            watch()
        begin = time.time()
        self._await(lambda: self._is_right(written, known), watch=watch)
        watch()
        memory = max(memory, contender.memory_mb())
        self._check(output.new(), records, inputs.passing - passing)
        # The first check after the last record was written.
        last = next((sample for sample in samples if sample[0] >= output.latest), samples[-1])
        used, of_broker = last[1] - samples[0][1], last[2] - samples[0][2]
        seconds = output.latest - begin
        costs = used / records * 1e6, of_broker / records * 1e6
        return Figures(records, seconds, records / seconds, *costs, memory)

    def _check(self, rows: pa.Table, records: int, passing: int) -> None:
        """Raise Refused if the result is wrong."""
        topology = self._setting.topology
        if self._contender.emits_every_update(topology):
            required = passing if topology in WITHOUT_STATE else records
            if rows.num_rows != required:
                raise Refused(f"{rows.num_rows:,} records were written, not {required:,}")
        if topology not in _COUNTS:
            self._check_values(rows)
        elif self._output.counted() != self._given.records:
            raise Refused(f"counted {self._output.counted():,} of {self._given.records:,}")

    def _check_values(self, rows: pa.Table) -> None:
        values = rows.column("value")
        if self._setting.topology == "table_join":
            is_right = pc.equal(pc.binary_length(values), VALUE_BYTES + 10)
        else:
            texts = values.cast(pa.string())
            is_right = pc.and_(pc.utf8_is_upper(texts), pc.not_equal(_first(texts), "B"))
        if not pc.all(is_right).as_py():
            raise Refused("a value is wrong")


def _first(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_slice_codeunits(texts, 0, 1)
