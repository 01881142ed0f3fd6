"""Instances of KafkaStreams as programs, on clusters, and killed: each count occurs once."""

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ottla.base.errors import ApiError
from ottla.client.admin.groups import describe_group
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.streams.application.election import group_of
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_encoding import Rows
from tests.spark.app_driver import APPLICATION_ID, RECORDS_PER_BATCH
from tests.spark.processes import (
    Program,
    Reader,
    Seen,
    StandaloneCluster,
    committed,
    dice,
    driver,
    executors,
    kill_all,
    local_cluster_url,
    reading,
    wait_until,
    workers,
)

# Several JVMs start in sequence, which alone takes a minute on a busy machine.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.alone]

PARTITIONS = 2
WORDS = 10
RECORDS = 9 * RECORDS_PER_BATCH
_START = 1_700_000_000_000
# Return the path of the package in the process that runs it, and of the module itself.
_MODULE = """
import ottla

def place(value):
    return f"{value} {ottla.__file__} {__file__}"
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with `words`, which has each of WORDS equally often, and the empty `counted`."""
    with Cluster() as cluster:
        for topic in ("words", "counted"):
            cluster.create_topic(topic, partitions=PARTITIONS, config={"retention.ms": "-1"})
        with Brokers(cluster.bootstrap) as brokers, ColumnSender(brokers) as sender:
            for partition in range(PARTITIONS):
                own = range(partition, WORDS, PARTITIONS)
                words = [b"word-%d" % n for n in own] * (RECORDS // WORDS)
                column = pa.array(words, pa.binary())
                times = np.full(len(words), _START)
                sender.send("words", partition, Rows(column, column, None, times))
            sender.flush()
        yield cluster


def _instance(cluster: Cluster, folder: Path, name: str, master: str) -> Program:
    module = folder / "only_here" / "placing.py"
    module.parent.mkdir(exist_ok=True)
    module.write_text(_MODULE)
    arguments = (cluster.bootstrap, str(folder / "state"), master, str(module))
    return driver("app_driver", folder / f"{name}.txt", *arguments)


def _read_some(reader: Reader, chance: random.Random, program: Program) -> None:
    """Read up to a random moment between or in micro-batches."""
    count = min(len(reader.seen) + chance.randint(1, RECORDS // 3), RECORDS - 1)
    reader.read_until(count, program.text)
    reader.read(chance.random())


def _counts(seen: Seen) -> Counter[tuple[bytes, int]]:
    counts: Counter[tuple[bytes, int]] = Counter()
    for (key, value), times in seen.items():
        assert key is not None
        assert value is not None
        counts[key, int(value.split()[0])] += times
    return counts


def _places(seen: Seen) -> set[tuple[str, str]]:
    """Return the paths of package and module from each record."""
    rows = ((value or b"").decode().split() for _, value in seen)
    return {(package, module) for _, package, module in rows}


def _each_once() -> Counter[tuple[bytes, int]]:
    counts = range(1, RECORDS // WORDS + 1)
    return Counter({(b"word-%d" % word, count): 1 for word in range(WORDS) for count in counts})


def _await_members(cluster: Cluster, count: int, program: Program) -> None:
    def is_so() -> bool:
        try:
            description = describe_group(brokers, group_of(APPLICATION_ID))
        except ApiError:
            return False
        return len(description.members) == count and description.state == "Stable"

    with cluster.admin() as brokers:
        wait_until(is_so, program.text)


def test_a_standby_takes_over_when_the_active_instance_is_paused_or_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The broker's group protocol elects it; a paused instance resumes as a standby.

    Readers of committed records see each count once.
    """
    chance = dice()
    one, two = (_instance(cluster, tmp_path, name, "local[2]") for name in ("one", "two"))
    with one, reading(cluster.bootstrap, "counted", PARTITIONS) as reader:
        # The first instance is elected and stays active.
        _await_members(cluster, 1, one)
        with two:
            _await_members(cluster, 2, two)
            _read_some(reader, chance, one)
            one.pause()
            _await_members(cluster, 1, two)
            _read_some(reader, chance, two)
            one.resume()
            _await_members(cluster, 2, one)
            _read_some(reader, chance, two)
            two.kill()
            reader.read_until(RECORDS, one.text)
            _await_members(cluster, 1, one)
    assert _counts(committed(cluster.bootstrap, "counted", PARTITIONS)) == _each_once()


# A user's program with the arguments BOOTSTRAP STATE_DIR.
_PROGRAM = """
import sys

from ottla.streams import KafkaStreams, Serdes, StreamsBuilder

def invert(value):
    return 1 / len(value.removeprefix("word-0"))

builder = StreamsBuilder()
text = Serdes.string()
builder.stream("words", key=text, value=text).map_values(invert).group_by_key().count().to_stream().to("counted")
bootstrap, state_dir = sys.argv[1:]
app = KafkaStreams(
    builder.build(),
    application_id="failing",
    bootstrap_servers=bootstrap,
    state_dir=state_dir,
    num_stream_threads=1,
)
with app:
    app.await_termination()
"""


def test_a_program_that_fails_shows_the_error_and_its_place(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The log and the traceback show the error and the frame of the user's function, not Spark's."""
    file = tmp_path / "inverting.py"
    file.write_text(_PROGRAM)
    arguments = [sys.executable, str(file), cluster.bootstrap, str(tmp_path / "state")]
    with Program(arguments, tmp_path / "said.txt") as program:
        assert program.wait() == 1
    lines = program.text().splitlines()
    begin = lines.index("Traceback (most recent call last):")
    # Java may print warnings before.
    failed = lines.index("The application failing has failed: ZeroDivisionError: division by zero")
    assert lines[failed + 1].startswith("Raised at the record of topic words, partition 0, offset")
    assert not any("ERROR" in line or "of UDF" in line for line in lines)
    assert not any(re.match(r"\s+at [\w.$]+\(", line) for line in lines)
    error = next(
        begin + n
        for n, line in enumerate(lines[begin:])
        if line.endswith("ZeroDivisionError: division by zero")
    )
    assert lines[error + 1].startswith("Raised at the record of topic words, partition 0, offset 0")
    assert "in invert" in lines[error + 2]
    assert "return 1 / len(" in lines[error + 3]
    assert len(lines) <= error + 5
    frames = [line for line in lines[begin:error] if line.startswith("  File ")]
    assert str(file) in frames[0]
    # Python shows the method that raises.
    assert ["await_termination" in frame for frame in frames[1:]] == [True]


@contextmanager
def _master(kind: str, folder: Path) -> Iterator[tuple[str, list[Program]]]:
    """Yield a master's URL, and the programs besides the driver that start its executors."""
    if kind == "local-cluster":
        with local_cluster_url() as url:
            yield url, []
        return
    with StandaloneCluster(folder) as standalone:
        yield standalone.url, standalone.programs


# The executors are the same programs; local-cluster has master and workers in the driver.
@pytest.mark.parametrize(
    "kind",
    ["local-cluster", pytest.param("standalone", marks=pytest.mark.nightly("[local-cluster]"))],
)
def test_executors_on_a_cluster_receive_the_code_and_can_be_killed(
    cluster: Cluster, tmp_path: Path, kind: str
) -> None:
    """Executors and workers are killed at random moments; each count still occurs once."""
    chance = dice()
    with _master(kind, tmp_path) as (url, programs):
        app = _instance(cluster, tmp_path, "app", url)
        with app, reading(cluster.bootstrap, "counted", PARTITIONS) as reader:
            for choose in (executors, workers):
                _read_some(reader, chance, app)
                below = [child for program in (app, *programs) for child in program.below()]
                if choose is workers:
                    below = [
                        low
                        for executor in executors(below)
                        for low in executor.children(recursive=True)
                    ]
                kill_all(chance.choice(choose(below)))
            reader.read_until(RECORDS, app.text)
    seen = committed(cluster.bootstrap, "counted", PARTITIONS)
    assert _counts(seen) == _each_once()
    for package, module in _places(seen):
        assert "ottla.zip" in package
        assert not module.startswith(str(tmp_path / "only_here"))
