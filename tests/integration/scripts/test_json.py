"""`--output json` of every script: standard output is lines of JSON and nothing else."""

import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.client.admin import offsets
from ottla.client.brokers import Brokers
from ottla.testing import Cluster
from ottla_scripts import entry
from ottla_scripts.table import SCRIPTS
from tests.compat.scripts.transcript import FILES
from tests.integration.tools.test_mirror import produce
from tests.unit.scripts.lines import FAILING, LINES

pytestmark = pytest.mark.slow

_REASSIGNMENT = '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1]}]}'
_PLAN = """
name = "one"
duration = "1s"
[topics.orders]
[[produce]]
topic = "orders"
records = 1
"""


class World(NamedTuple):
    """A cluster with the topic `a` of three records and the empty group `g`, and files."""

    cluster: Cluster
    jmx_url: str
    folder: Path

    def command_line(self, line: str) -> list[str]:
        """Return a command line as a list."""
        places = {"$B": self.cluster.bootstrap, "$J": self.jmx_url, "$D": str(self.folder)}
        for name, place in places.items():
            line = line.replace(name, place)
        return line.split()


@pytest.fixture(name="world", scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    options = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0",
               "transaction.state.log.num.partitions": "1", "metrics.listener": "127.0.0.1:0"}  # fmt: skip
    folder = tmp_path_factory.mktemp("files")
    with Cluster(options=options) as cluster:
        address = cluster.node(cluster.brokers[0]).monitoring_address
        assert address is not None
        cluster.create_topic("a", partitions=1)
        produce(cluster, "a", [b"1", b"2", b"3"])
        with Brokers(cluster.bootstrap) as brokers:
            offsets.commit_offsets(brokers, "g", {("a", 0): offsets.CommittedOffset(1)})
        node = cluster.brokers[0]
        (folder / "moves.json").write_text(_REASSIGNMENT.replace("[1]", f"[{node}]"))
        (folder / "topics.json").write_text('{"version": 1, "topics": [{"topic": "a"}]}')
        (folder / "offsets.json").write_text(
            '{"partitions": [{"topic": "a", "partition": 0, "offset": 1}], "version": 1}'
        )
        bootstrap = f"bootstrap.servers={cluster.bootstrap}\n"
        (folder / "source.properties").write_text(f"{bootstrap}auto.offset.reset=earliest\n")
        (folder / "target.properties").write_text(bootstrap)
        (folder / "worker.properties").write_text(bootstrap)
        (folder / "connector.properties").write_text(
            "name=in\nconnector.class=FileStreamSource\nfile=input.txt\ntopic=lines\n"
        )
        (folder / "plan.toml").write_text(_PLAN)
        (folder / "server.properties").write_text(
            f"process.roles=broker,controller\nnode.id=1\nlog.dirs={folder / 'data'}\n"
        )
        shutil.copytree(FILES / "dumped-0", folder / "dumped-0")
        url = f"service:jmx:rmi:///jndi/rmi://{address[0]}:{address[1]}/jmxrmi"
        yield World(cluster, url, folder)


def _run(
    name: str, command_line: list[str], stdin: bytes, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, list[Any], str]:
    """Run a script in this process; return its exit code, its parsed lines, and its errors."""
    streams = {
        stream: io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        for stream in ("stdout", "stderr")
    }
    with monkeypatch.context() as patch:
        for stream, wrapper in streams.items():
            patch.setattr(sys, stream, wrapper)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        code = entry.run(name, [*command_line, "--output", "json"])
    out, errors = (wrapper.buffer.getvalue().decode() for wrapper in streams.values())  # type: ignore[attr-defined]
    return code, [json.loads(line) for line in out.splitlines()], errors


@pytest.mark.parametrize(
    ("name", "line"), [(name, line) for name, lines in LINES.items() for line in lines]
)
def test_output_is_json(
    name: str, line: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script succeeds, and each line of its standard output is JSON."""
    code, rows, errors = _run(name, world.command_line(line), b"4\n", monkeypatch)
    assert code == 0, errors
    assert rows, "nothing was printed"


@pytest.mark.parametrize("name", list(FAILING))
def test_output_of_a_failure_is_json(
    name: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is 1, and the standard output is JSON."""
    # The process ids of servers are in the folder for temporary files.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    code, rows, errors = _run(name, world.command_line(FAILING[name]), b"", monkeypatch)
    assert code == 1
    assert all("messages" in row for row in rows)
    assert errors or any(row["messages"] for row in rows)


def test_records_have_their_fields(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console consumer prints an object for each record, and nothing else."""
    line = "--bootstrap-server $B --topic a --partition 0 --offset 1 --max-messages 1"
    code, (row,), _ = _run("kafka-console-consumer", world.command_line(line), b"", monkeypatch)
    assert code == 0
    assert (row["topic"], row["partition"], row["offset"], row["key"]) == ("a", 0, 1, None)
    assert (row["value"], row["headers"]) == ("2", [])


def test_sentences_become_messages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences of Apache Kafka's tool are elements of a list."""
    line = "--bootstrap-server $B --alter --topic a --add-config segment.ms=3600000"
    code, rows, _ = _run("kafka-configs", world.command_line(line), b"", monkeypatch)
    assert (code, rows) == (0, [{"messages": ["Completed updating config for topic a."]}])


def test_every_script_is_run() -> None:
    """A new script needs a command line here."""
    assert {*LINES, *FAILING} == set(SCRIPTS)
