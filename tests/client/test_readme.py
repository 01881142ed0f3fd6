"""The Python examples of README.md run as shown, except for the address of the broker."""

import contextlib
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.testing import Cluster

README = Path(__file__).resolve().parents[2] / "README.md"


class Printed(Exception):
    """An example has printed its first line, which ends it."""


def _block(word: str) -> str:
    """Return the only example that contains a word."""
    (block,) = [block for block in _blocks() if word in block]
    return block


def _blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def _run(block: str, bootstrap: str = "") -> dict[str, Any]:
    """Run an example up to the first line that it prints; return its names and that line."""
    names: dict[str, Any] = {}

    def show(*values: object) -> None:
        names["printed"] = " ".join(map(str, values))
        raise Printed

    names["print"] = show
    for start in ("Producer(", 'Consumer(\n    "orders", '):
        block = block.replace(f"with {start}", f"with {start}bootstrap_servers={bootstrap!r}, ")
    block = block.replace('"127.0.0.1:9092"', repr(bootstrap))
    block = block.replace('("greetings")', f'("greetings", bootstrap={bootstrap!r})')
    with contextlib.suppress(Printed):
        exec(compile(block, str(README), "exec"), names)
    return names


def test_every_example_is_run_by_a_test() -> None:
    """A new example needs a test: here, or in tests/spark/test_readme.py."""
    words = ("ottla_cluster", "Cluster(brokers=3)", "Serdes.json()", "KafkaStreams(", "read_table(",
             "ottla_spark.")  # fmt: skip
    assert [[word for word in words if word in block] for block in _blocks()] == [
        [word] for word in words
    ]


def test_the_test_of_the_readme_passes(cluster: Cluster) -> None:
    """The fixture is a cluster."""
    _run(_block("ottla_cluster"))["test_orders_are_published"](cluster)
    assert "orders" in cluster.topics()


def test_the_cluster_of_the_readme_survives_the_death_of_a_leader() -> None:
    """The example kills one of three brokers, and prints the addresses of the cluster."""
    assert re.fullmatch(r"[\d.:,]+", _run(_block("Cluster(brokers=3)"))["printed"])


def test_the_consumer_of_the_readme_prints_the_record_of_its_producer() -> None:
    """A new group reads the records that were sent before it existed."""
    with Cluster() as cluster:
        printed = _run(_block("Serdes.json()"), cluster.bootstrap)["printed"]
    assert printed == "b'anna' {'id': 1}"


def _greet(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random"})
    for value in (b"hello world", b"hello again"):
        producer.produce("greetings", value)
    assert producer.flush(10) == 0


def test_the_topology_of_the_readme_counts_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the topic of the commands from its beginning; its state is in a temporary folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Cluster() as cluster:
        _greet(cluster)
        printed = _run(_block("KafkaStreams("), cluster.bootstrap)["printed"]
    assert printed == "{'again': 1, 'hello': 2, 'world': 1}"
    assert f"# {printed}" in _block("KafkaStreams(")


def test_the_table_of_the_readme_has_a_row_for_each_record(cluster: Cluster) -> None:
    """Its values are bytes."""
    _greet(cluster)
    table = _run(_block("read_table("), cluster.bootstrap)["table"]
    assert table.column("value").to_pylist() == [b"hello world", b"hello again"]
