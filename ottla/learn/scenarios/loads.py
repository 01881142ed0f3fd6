"""Lessons about load: a load test, and the records that a producer loses when it is killed."""

import statistics
import subprocess
import sys
import time
from typing import Any

from ottla.client.records import TopicPartition
from ottla.learn.events import Text
from ottla.learn.lesson import Subject
from ottla.learn.observation import log_end_offset
from ottla.learn.stage import Stage

SUBJECT = Subject("load")
_ROUNDS = 5
_COUNT, _COUNT_WAITING = 1000, 40
_SIZE = 200
_VALUE = b"x" * _SIZE
_ONE_BY_ONE = Text("one by one", "逐条等待")
# A producer of its own process: three records are acknowledged, five wait for their batch.
_PROGRAM = """
import sys
from ottla.client import Producer
producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=60_000, enable_idempotence=False)
futures = [producer.send(sys.argv[2], f"acknowledged-{n}", partition=0) for n in range(3)]
producer.flush()
print("stored at", *(future.result().offset for future in futures))
for number in range(5):
    producer.send(sys.argv[2], f"unsent-{number}", partition=0)
print("send returned 5 times", flush=True)
sys.stdin.read()
"""


@SUBJECT.lesson(
    "unsent-records",
    question=Text(
        "Which records are lost if the producer's process is killed?",
        "生产者进程被杀死时会丢失哪些消息？",
    ),
    explanation=Text(
        "Those that `send` has only queued. The killed producer had {acknowledged} acknowledged records "
        "and {queued} that waited for their batch (linger.ms); the log has {stored}. `send` returning "
        "means nothing: a record is safe when its future has a result or its callback was called, and "
        "then only as safe as acks says. `flush` and `close` wait for that. A program that must not lose its "
        "input confirms the input (its offset, its database row) after the acknowledgement.",
        "只进入队列的消息会丢失。被杀死的生产者有 {acknowledged} 条已确认的消息，{queued} 条在等待批次（linger.ms）；日志中有 {stored}。"
        "send 返回并不代表什么：future 有结果或回调被调用后消息才安全，而且安全程度取决于 acks。flush 和 close 会等待确认。"
        "不能丢失输入的程序，应在确认之后才确认自己的输入（它的 offset、数据库行）。",
    ),
)
def unsent_records(stage: Stage) -> None:
    """A producer is killed while records wait for their batch."""
    topic = stage.topic()
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", _PROGRAM, stage.cluster.bootstrap, topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        lines = [process.stdout.readline().split() for _ in range(2)] if process.stdout else []
    finally:
        process.kill()
        process.communicate()
    offsets = lines[0][2:]
    stage.say(
        "The producer printed the offsets {offsets}, and then that `send` has returned {queued} times. It is killed.",
        "生产者打印了 offset {offsets}，随后打印 send 返回了 {queued} 次。进程被杀死。",
        offsets=offsets,
        acknowledged=len(offsets),
        queued=int(lines[1][2]),
    )
    stage.show(topic)
    stage.say("The log has {stored}.", "日志中有 {stored}。", stored=stage.values(topic))


@SUBJECT.lesson(
    "load-test",
    brokers=3,
    question=Text(
        "How do you load test Kafka, and what do acks and batches cost?",
        "如何对 Kafka 做压力测试？acks 和批次的代价是什么？",
    ),
    explanation=Text(
        "Send records of a fixed size as fast as the cluster takes them, and measure records/s, MB/s "
        "and the latency of acknowledgements as percentiles, never as an average; then read them back. "
        "One run proves nothing. Here {rounds} rounds of {count} records of {size} bytes took turns, so that a pause of the machine "
        "hits both settings, and the start of each client is left out. Records/s, as the median and the range of the rounds: {rates}. "
        "If the ranges overlap, the difference is noise. The 99th percentile of the latency was {p99_ms} ms. "
        "All {read} were read, at {read_rate} records/s after the first. Waiting for each record costs most: sending without a wait was "
        "{factor} times faster. These are numbers of this machine, with all brokers in one process; measure yours with "
        "kafka-producer-perf-test and kafka-consumer-perf-test, with your record size, acks, compression and "
        "partitions, for minutes, and watch the brokers during the test.",
        "以固定大小的消息尽快发送，测量每秒条数、MB/s，以及确认延迟的百分位（不要用平均值），然后再读回来。"
        "只测一次什么也证明不了。这里 {count} 条 {size} 字节的消息轮流测量 {rounds} 轮，机器的停顿对各种设置影响相同，客户端的启动不计入。每秒条数（各轮的中位数和范围）：{rates}。"
        "范围重叠时，差别只是噪声。延迟的 99 百分位为 {p99_ms} 毫秒。{read} 条全部读回，第一条之后每秒 {read_rate} 条。"
        "逐条等待代价最大：不等待时的速度是它的 {factor} 倍。这些数字只属于这台机器，而且所有 broker 在同一个进程中；请用 kafka-producer-perf-test 和 kafka-consumer-perf-test，"
        "以自己的消息大小、acks、压缩和分区数，测量几分钟，同时观察 broker。",
    ),
)
def load_test(stage: Stage) -> None:
    """Rates and latencies with acks=1, with acks=all, and with a wait for each record."""
    loads: dict[str | Text, _Load] = {
        "acks=1": _Load(stage, "one", acks=1),
        "acks=all": _Load(stage, "all", acks="all"),
        _ONE_BY_ONE: _Load(stage, "waiting", waits=True, acks="all"),
    }
    for _ in range(_ROUNDS):
        for load in loads.values():
            load.run()
    stage.table(
        Text("Producing", "生产"),
        Text(
            "how,records,records/s,MB/s,p50 ms,p99 ms",
            "方式,消息数,条/秒,MB/秒,p50 毫秒,p99 毫秒",
        ),
        [
            (name, load.count, load.spread(), round(load.median * _SIZE / 1e6, 2), *load.latency())
            for name, load in loads.items()
        ],
    )
    topic = f"{stage.name}.all"
    read, read_rate = _read_back(stage, topic)
    stage.say(
        "Records/s: {rates}. Read back: {read} of {end}, {read_rate} records/s.",
        "每秒条数：{rates}。读回：{end} 条中的 {read} 条，每秒 {read_rate} 条。",
        rates={name: load.spread() for name, load in loads.items()},
        p50_ms={name: load.latency()[0] for name, load in loads.items()},
        p99_ms={name: load.latency()[1] for name, load in loads.items()},
        rounds=_ROUNDS,
        count=_COUNT,
        size=_SIZE,
        read=read,
        end=log_end_offset(stage.cluster, stage.cluster.leader(topic), topic),
        read_rate=round(read_rate),
        factor=round(loads["acks=all"].median / loads[_ONE_BY_ONE].median, 1),
    )


class _Load:
    """One way to send: the rates of its rounds, and the latencies of all."""

    def __init__(self, stage: Stage, noun: str, *, waits: bool = False, **settings: Any) -> None:
        self._topic = stage.topic(noun, replicas=3)
        self._waits = waits
        self._rates: list[float] = []
        self._latencies: list[float] = []
        self._producer = stage.producer(**{"linger_ms": 0 if waits else 5, **settings})
        # The first record connects, and asks for the metadata.
        self._producer.send(self._topic, _VALUE, partition=0).result(20)
        self.count = 1

    def run(self) -> None:
        """Send the records of a round, and wait for the last one."""
        count = _COUNT_WAITING if self._waits else _COUNT
        begin = time.perf_counter()
        for _ in range(count):
            sent = time.perf_counter()

            def note(metadata: Any, error: Any, sent: float = sent) -> None:
                self._latencies.append(time.perf_counter() - sent)

            future = self._producer.send(self._topic, _VALUE, partition=0, on_delivery=note)
            if self._waits:
                future.result(20)
        self._producer.flush(20)
        self._rates.append(count / (time.perf_counter() - begin))
        self.count += count

    @property
    def median(self) -> float:
        """The median of the rounds in records/s."""
        return statistics.median(self._rates)

    def spread(self) -> str:
        """Return the median and the range of the rounds as a text."""
        return f"{self.median:.0f} ({min(self._rates):.0f}–{max(self._rates):.0f})"

    def latency(self) -> tuple[float, float]:
        """Return the 50th and the 99th percentile in ms."""
        ordered = sorted(self._latencies)
        p50, p99 = (round(ordered[int(len(ordered) * part)] * 1000, 1) for part in (0.5, 0.99))
        return p50, p99


def _read_back(stage: Stage, topic: str) -> tuple[int, float]:
    """Return the number of records of partition 0, and the records/s after the first poll."""
    reader = stage.consumer()
    end = reader.end_offsets([(topic, 0)])[TopicPartition(topic, 0)]
    reader.assign({(topic, 0): 0})
    first = count = len(stage.take(reader, 1))
    begin = time.perf_counter()
    while count < end:
        count += len(reader.poll(1))
    return count, (count - first) / (time.perf_counter() - begin)
