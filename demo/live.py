"""The live view: the progress of the pipeline, its output, and the latest alerts; only on a
terminal.
"""

import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from demo import results
from demo.topology import ALERTS, Alert
from ottla.streams.spark import StreamsQuery
from ottla.streams.spark.query.query import end_offsets

_ALERTS_SHOWN = 6
_REFRESH_S = 0.25
_MOST_AT_ONCE = 5_000


class View:
    """Shows the progress of a query on the terminal; a context manager that cleans up after itself."""

    def __init__(self, console: Console, bootstrap: str, partitions: int) -> None:
        self._console = console
        self._bootstrap = bootstrap
        self._partitions = partitions
        self._name, self._total = "", 0
        self._written: Counter[str] = Counter()
        self._alerts: deque[Alert] = deque(maxlen=_ALERTS_SHOWN)
        self._open = ExitStack()
        self._consumer: Consumer | None = None

    def __enter__(self) -> "View":
        """Start to read the output of the pipeline, if standard output is a terminal."""
        if self._console.is_terminal:
            settings = {"bootstrap.servers": self._bootstrap, "group.id": "flights-live"}
            settings |= {"enable.auto.commit": "false", "isolation.level": "read_committed"}
            self._consumer = Consumer(settings)
            self._open.callback(self._consumer.close)
            numbers = range(self._partitions)
            places = [(topic, number) for topic in results.KEYS for number in numbers]
            self._consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop reading."""
        self._open.close()

    def follow(self, query: StreamsQuery, name: str, total: int, work: Callable[[], None]) -> None:
        """Do some work, such as waiting for the query, and show how much of `total` is processed."""
        self._name, self._total = name, total
        if self._consumer is None:
            work()
            return
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(work)
            began = time.monotonic()
            with Live(console=self._console, transient=True, auto_refresh=False) as live:
                while not done.done():
                    self._read(self._consumer)
                    taken = _taken(query)
                    live.update(self._picture(taken, time.monotonic() - began), refresh=True)
            done.result()

    def _read(self, consumer: Consumer) -> None:
        for message in consumer.consume(_MOST_AT_ONCE, _REFRESH_S):
            value = message.value()
            if message.error() is not None or value is None:
                continue
            self._written[message.topic() or ""] += 1
            if message.topic() == ALERTS:
                self._alerts.append(msgspec.json.decode(value, type=Alert))

    def _picture(self, taken: int, seconds: float) -> Group:
        head = Table.grid(padding=(0, 2))
        bar = ProgressBar(self._total, min(taken, self._total), width=40)
        text = f"{taken:,} of {self._total:,} records processed, {seconds:.0f} s"
        head.add_row(Text("  "), bar, text)
        written = Table.grid(padding=(0, 2))
        for topic in results.KEYS:
            written.add_row("  ", Text(topic, "cyan"), f"{self._written[topic]:,} records")
        alerts = Table.grid(padding=(0, 2))
        for alert in reversed(self._alerts):
            when = datetime.fromtimestamp(alert.scheduled_ms / 1000, UTC)
            places = f"{alert.origin} → {alert.destination}"
            late = Text(f"{alert.delay // 60} h {alert.delay % 60:02d} late", "red")
            alerts.add_row("  ", f"{when:%d %b %H:%M}", alert.flight, places, late)
        return Group(f"  {self._name} …", head, "", written, "", alerts)


def _taken(query: StreamsQuery) -> int:
    """Return the number of records of all topics that the query has processed."""
    progress = query.queries[0].lastProgress
    return 0 if progress is None else sum(end_offsets(progress).values())
