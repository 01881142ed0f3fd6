"""The command lines of the course notes, verbatim: with --zookeeper and --broker-list.

Apache Kafka is the last version with a ZooKeeper, and the scripts are ours: its own tools have
removed these options.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing.process import BrokerProcess
from tests.compat import zookeeper
from tests.compat.scripts.test_replay import run_script

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]
_GROUPS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
# Commands ($Z: ZooKeeper, $B: broker), their standard input and their standard output.
_LINES: list[tuple[str, list[str], list[str]]] = [
    ("kafka-topics.sh --zookeeper $Z --list", [], []),
    (
        "kafka-topics.sh --zookeeper $Z --create --replication-factor 1 --partitions 2 --topic first",
        [],
        ["Created topic first."],
    ),
    ("kafka-topics.sh --zookeeper $Z --list", [], ["first"]),
    ("kafka-console-producer.sh --topic first --broker-list $B", ["hello", "world"], []),
    (
        "kafka-console-consumer.sh --topic first --bootstrap-server $B --from-beginning --max-messages 2",
        [],
        ["hello", "world"],
    ),
    (
        "kafka-console-consumer.sh --zookeeper $Z --topic first --from-beginning --max-messages 2",
        [],
        ["hello", "world"],
    ),
    (
        "kafka-run-class.sh kafka.tools.GetOffsetShell --broker-list $B --topic first --time -2",
        [],
        ["first:0:0", "first:1:0"],
    ),
    (
        "kafka-preferred-replica-election.sh --bootstrap-server $B",
        [],
        [
            "This tool is deprecated. Please use kafka-leader-election tool. "
            "Tracking issue: KAFKA-8405"
        ],
    ),
    (
        "kafka-topics.sh --zookeeper $Z --delete --topic first",
        [],
        [
            "Topic first is marked for deletion.",
            "Note: This will have no impact if delete.topic.enable is not set to true.",
        ],
    ),
]


@pytest.fixture(
    name="addresses",
    params=["Ottla", pytest.param("Apache Kafka", marks=pytest.mark.nightly("[Ottla]"))],
)
def _addresses(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Return the addresses of a ZooKeeper and of the broker that is registered there."""
    with zookeeper.running(tmp_path / "zookeeper") as ensemble:
        if request.param == "Ottla":
            options = {**_GROUPS, "zookeeper.connect": ensemble}
            with BrokerProcess(tmp_path / "data", options=options) as broker:
                yield ensemble, broker.bootstrap
            return
        rows = [f"{name}={value}" for name, value in _GROUPS.items()]
        node = zookeeper.Broker(tmp_path / "kafka", ensemble, options=rows)
        node.start()
        try:
            yield ensemble, node.bootstrap
        finally:
            node.kill()


def test_session_of_the_course(addresses: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line works on both brokers and prints what the notes show."""
    for line, stdin, expected in _LINES:
        fields = line.replace("$Z", addresses[0]).replace("$B", addresses[1]).split()
        data = "".join(f"{text}\n" for text in stdin).encode()
        done = run_script(fields, data, monkeypatch)
        printed = sorted(text for text in done.out.splitlines() if text.strip())
        printed = [text for text in printed if not text.startswith("__")]
        assert (done.code, printed) == (0, sorted(expected)), (line, done)
        if "--zookeeper" in line:
            assert f"use --bootstrap-server {addresses[1]} instead" in done.errors
