"""The example of docs/local-engine.md runs as shown, and as a command."""

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from ottla.base.errors import ConfigError
from ottla.streams import KafkaStreams
from ottla.testing import Cluster
from tests.law import source

PAGE = "docs/local-engine.md"
_WAIT_S = 60.0
_MODULE = """
from ottla.streams import Consumed, Grouped, Produced, Serdes, StreamsBuilder
TEXTS = Serdes.string(), Serdes.string()
topology = StreamsBuilder()
words = topology.stream("words", Consumed.with_(*TEXTS)).group_by_key(Grouped.with_(*TEXTS))
words.count().map_values(str).to_stream().to("counts-of-words", Produced.with_(*TEXTS))
"""


def _example(bootstrap: str) -> str:
    page = (source.ROOT / PAGE).read_text(encoding="utf-8")
    text, listeners = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    # Listeners are set before the start.
    program = str(text).replace("with app:", f"{listeners}\nwith app:")
    return program.replace("127.0.0.1:9092", bootstrap)


def _prepare(cluster: Cluster) -> None:
    for topic in ("words", "counts-of-words"):
        cluster.create_topic(topic, partitions=2)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random"})
    for word in ("a", "b", "a"):
        producer.produce("words", b"1", word)
    assert producer.flush(_WAIT_S) == 0


def _results(bootstrap: str) -> set[tuple[bytes | None, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(["counts-of-words"])
    messages = consumer.consume(3, _WAIT_S)
    consumer.close()
    return {(message.key(), message.value()) for message in messages}


def test_the_example_counts_words(ottla_cluster: Cluster) -> None:
    """It starts, writes three counts, and ends when it is closed."""
    _prepare(ottla_cluster)
    names: dict[str, Any] = {}
    run = threading.Thread(
        target=lambda: exec(compile(_example(ottla_cluster.bootstrap), PAGE, "exec"), names)
    )
    run.start()
    assert _results(ottla_cluster.bootstrap) == {(b"a", b"1"), (b"b", b"1"), (b"a", b"2")}
    assert names["app"].close(_WAIT_S)
    run.join(_WAIT_S)
    assert not run.is_alive()


def test_the_command_runs_a_topology_until_it_is_interrupted(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """`ottla streams run MODULE:TOPOLOGY --engine local` needs no Spark, and ends with Ctrl-C."""
    _prepare(ottla_cluster)
    (tmp_path / "words.py").write_text(_MODULE)
    command = [sys.executable, "-m", "ottla", "streams", "run", "words:topology"]
    command += ["--engine", "local", "--bootstrap", ottla_cluster.bootstrap]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert _results(ottla_cluster.bootstrap) == {(b"a", b"1"), (b"b", b"1"), (b"a", b"2")}
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=_WAIT_S)
    assert process.returncode == 0, errors
    assert "REBALANCING -> RUNNING" in errors


@pytest.mark.parametrize("name", ["master", "spark_settings"])
def test_options_of_spark_are_refused(name: str, ottla_cluster: Cluster) -> None:
    """They would have no effect, and the error says so."""
    options: dict[str, Any] = {name: "local[2]" if name == "master" else {"a": "b"}}
    with pytest.raises(ConfigError, match=f"{name} is an option of Spark"):
        KafkaStreams(
            _topology(),
            application_id="app",
            bootstrap_servers=ottla_cluster.bootstrap,
            engine="local",
            **options,
        )


def _topology() -> Any:
    names: dict[str, Any] = {}
    text = _example("127.0.0.1:1").partition("\napp = ")[0]
    exec(compile(text, PAGE, "exec"), names)
    return names["builder"].build()
