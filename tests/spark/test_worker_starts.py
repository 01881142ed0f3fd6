"""Spark's Python workers: where they import PySpark from, and their start on a busy machine."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.streams.task.task import TopicRecord
from ottla.testing.cluster import Cluster
from tests.spark import scenarios
from tests.spark.processes import Program, reading

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.alone]

_BUSY = 10
_PATIENCE_S = 800.0
_START = 1_700_000_000_000
# A user's program with the arguments BOOTSTRAP STATE_DIR.
_PROGRAM = """
import sys

from ottla.streams import KafkaStreams, Serdes, StreamsBuilder

builder = StreamsBuilder()
text = Serdes.string()
words = builder.stream("busy-words", key=text, value=text).group_by_key()
words.count("counts").to_stream().map_values(str).to("busy-counted", key=text, value=text)
bootstrap, state_dir = sys.argv[1:]
options = {"bootstrap_servers": bootstrap, "state_dir": state_dir}
app = KafkaStreams(builder.build(), application_id="busy", **options)
with app:
    app.await_termination()
"""


def _origin(_: int) -> tuple[str, list[str]]:
    pyspark = sys.modules["pyspark"]
    return str(pyspark.__file__), sys.path


def test_workers_import_the_installed_pyspark(spark: SparkSession) -> None:
    """Not the zip, which has no bytecode: a worker would start three times as late."""
    ((file, path),) = spark.sparkContext.parallelize([0], 1).map(_origin).collect()
    assert file == sys.modules["pyspark"].__file__
    assert not [
        folder for folder in path if folder.endswith((".zip", ".jar")) and "spark" in folder
    ]


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Keep the machine busy with processes that only count."""
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


@pytest.mark.timeout(900)
@pytest.mark.nightly("tests/spark/test_worker_starts.py::test_workers_import_the_installed_pyspark")
def test_an_application_starts_on_a_busy_machine(broker: Cluster, tmp_path: Path) -> None:
    """It processes its records, with retries if workers are too late."""
    for topic in ("busy-words", "busy-counted"):
        broker.create_topic(topic, config={"retention.ms": "-1"})
    scenarios.produce(broker.bootstrap, {"busy-words": [TopicRecord(b"a", b"1", _START)]})
    file = tmp_path / "busy.py"
    file.write_text(_PROGRAM)
    words = [sys.executable, str(file), broker.bootstrap, str(tmp_path / "state")]
    with _busy(_BUSY), Program(words, tmp_path / "said.txt") as program:
        with reading(broker.bootstrap, "busy-counted", 1) as reader:
            deadline = time.monotonic() + _PATIENCE_S
            while not reader.seen and program.is_alive and time.monotonic() < deadline:
                reader.read(0.5)
        assert reader.seen, program.text()
        assert program.is_alive, program.text()
        print(f"load {os.getloadavg()[0]:.1f}")
