"""Everyday mistakes: for each the sentence that must be there, and the time within which.

Each row was made by a person in a public place, whose kind the row names: a site for questions, a
mailing list, a forum, or the issues of a client. The rows are grouped by the place at which the
mistake is made: a client, a command, a pipeline, a topology, or a test.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.client import Consumer, Producer
from ottla.client.serdes import Serdes
from ottla.streams import StreamsBuilder, TopologyTestDriver
from ottla.testing import Cluster
from tests.client.strangers import server

DEAD = "127.0.0.1:1"
NOTHING = f"nothing listens on {DEAD}"
# A loaded machine is this much slower than the time that is promised.
GRACE_S = 10.0
QUESTION, FORUM, ISSUE, LIST = "questions and answers", "forum", "issue", "mailing list"
SILENT = {"bootstrap_servers": DEAD}


class Mistake(NamedTuple):
    """The kind of the public place, the call that is wrong, and the sentence within some seconds."""

    asked_in: str
    call: Callable[[Cluster], object]
    said: str
    within_s: float = 1.0


class Typed(NamedTuple):
    """The kind of the public place, a command line, its input, and the sentence, as `Mistake`."""

    asked_in: str
    words: str
    said: str
    within_s: float = 1.0
    stdin: bytes = b""


def send(cluster: Cluster, *, topic: str = "orders", value: Any = b"x", **settings: Any) -> None:
    """Send a record and wait for it, until an error has a cause."""
    words = {"partition": settings.pop("partition")} if "partition" in settings else {}
    with Producer({"bootstrap_servers": cluster.bootstrap, **settings}) as producer:
        wait_for(producer.send(topic, value, **words))


def wait_for(future: Any) -> None:
    """Wait in short steps: the error of a time-out has its cause after a moment."""
    deadline = time.monotonic() + GRACE_S
    while True:
        try:
            future.result(0.2)
        except TimeoutError as error:
            if ": " in str(error) or time.monotonic() > deadline:
                raise
        else:
            return


def send_to(response: bytes) -> None:
    """Send a record to a server that is no broker."""
    with server(response) as address, Producer(bootstrap_servers=address) as producer:
        wait_for(producer.send("orders", b"x"))


def read_json(cluster: Cluster) -> None:
    """Read text as JSON."""
    send(cluster, topic="texts", value=b"hello")
    settings = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
    with Consumer(value_deserializer=Serdes.json(), **settings) as consumer:
        consumer.assign([("texts", 0)])
        while True:
            consumer.poll(1)


def assign_and_subscribe(cluster: Cluster) -> None:
    """Use both ways to read at the same time."""
    with Consumer("orders", bootstrap_servers=cluster.bootstrap, group_id="both") as consumer:
        consumer.assign([("orders", 0)])


def use_closed(cluster: Cluster) -> None:
    """Send after the `with` block."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        pass
    producer.send("orders", b"x")


async def _report(*_: Any) -> None:
    """A callback that is a coroutine function."""


def call_back_async(cluster: Cluster) -> None:
    """Pass an async function as the callback; its error is logged in the thread of reports."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        future = producer.send("orders", b"x", on_delivery=_report)
        future.result(10)
        producer.flush()


CLIENTS = {
    "nothing runs": Mistake(QUESTION, lambda c: send(c, **SILENT), f"within 0.2 s: {NOTHING}", 2),
    "host is misspelt": Mistake(
        QUESTION,
        lambda c: send(c, bootstrap_servers="broker.invalid:9092"),
        "within 0.2 s: the host of broker.invalid:9092 is not known",
        2,
    ),
    "port is one of TLS": Mistake(
        ISSUE, lambda _: send_to(b"\x15\x03\x03\x00\x02\x02\x0a"), "speaks TLS", 2
    ),
    "port is one of a web page": Mistake(
        FORUM, lambda _: send_to(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "an HTTP server listens", 2
    ),
    "option is misspelt": Mistake(
        ISSUE, lambda c: send(c, compresion_type="lz4"), "did you mean 'compression.type'?"
    ),
    "acks has another value": Mistake(
        QUESTION, lambda c: send(c, acks=2), "configuration acks: String must be one of: all"
    ),
    "group is missing": Mistake(
        QUESTION, lambda _: Consumer("orders", **SILENT), "a subscription needs group_id"
    ),
    "settings are the first argument": Mistake(
        ISSUE,
        lambda _: Consumer({"bootstrap.servers": DEAD}),  # type: ignore[arg-type]
        "settings are not topics: pass them as keywords",
    ),
    "value is no bytes": Mistake(QUESTION, lambda c: send(c, value={"id": 1}), "value_serializer"),
    "value is not JSON": Mistake(QUESTION, read_json, "topic 'texts', partition 0, offset 0", 2),
    "partition does not exist": Mistake(
        QUESTION, lambda c: send(c, partition=99), "There is no partition 99 of topic 'orders'"
    ),
    "record is too large": Mistake(
        QUESTION,
        lambda c: send(c, value=bytes(2_000_000)),
        "max.message.bytes",
        2,
    ),
    "assign and subscribe": Mistake(QUESTION, assign_and_subscribe, "call unsubscribe first"),
    "producer is closed": Mistake(ISSUE, use_closed, "the producer is closed: create a new one"),
    "time-out is a text": Mistake(
        FORUM,
        lambda _: Consumer(**SILENT).poll("1"),  # type: ignore[arg-type]
        "the timeout of poll is a number of seconds",
    ),
    "transaction is missing": Mistake(
        QUESTION, lambda c: send(c, transactional_id="t"), "only in a transaction: use `with"
    ),
    "commit without a group": Mistake(
        LIST, lambda _: Consumer(**SILENT).commit({("orders", 0): 1}), "commits need group_id"
    ),
}
COMMANDS = {
    "noun is misspelt": Typed(FORUM, "tpoic list", "Did you mean 'topic'?"),
    "verb is misspelt": Typed(FORUM, "topic craete x", "Did you mean 'create'?"),
    "option is misspelt": Typed(QUESTION, "topic create x --partiton 3", "--partitions"),
    "number is a word": Typed(
        FORUM,
        "topic create x --replication-factor three",
        "'three' is not a whole number: write digits, as in 3",
    ),
    "nothing runs": Typed(QUESTION, f"topic list -b {DEAD}", f"{NOTHING}: start a broker with"),
    "port alone": Typed(QUESTION, "topic list -b 1", NOTHING),
    "host is misspelt": Typed(
        QUESTION, "topic list -b broker.invalid", "the host of broker.invalid:9092 is not known"
    ),
    "three replicas on one broker": Typed(
        QUESTION,
        "topic create x --replication-factor 3",
        "use at most as many replicas as there are brokers",
    ),
    "topic exists": Typed(QUESTION, "topic create orders", "or --if-not-exists to ignore this"),
    "name of a topic": Typed(QUESTION, "topic create a/b", "contains one or more characters"),
    "topic is misspelt": Typed(
        QUESTION, "consume ordres -e", "`ottla topic list` lists the topics"
    ),
    "topic is empty": Typed(QUESTION, "consume empty -e", "0 records"),
    "topic comes into being": Typed(
        QUESTION, "produce ordres1", "Created topic ordres1 with 1 partition.", stdin=b"x\n"
    ),
    "topic must not come into being": Typed(
        FORUM, "produce ordres2 --create-topics no", "`ottla topic list`", stdin=b"x\n"
    ),
    "ZooKeeper does not run": Typed(
        QUESTION, f"zookeeper shell --connect {DEAD} ls /", "-o coordination.listener="
    ),
    "position is a word": Typed(QUESTION, "consume orders -o yesterday", "is not a position: use"),
    "option of a topic is misspelt": Typed(
        QUESTION, "topic config orders --set retention=1000", "retention"
    ),
    "value of an option": Typed(
        QUESTION, "topic config orders --set retention.ms=1h", "retention.ms"
    ),
    "fewer partitions": Typed(QUESTION, "topic add-partitions orders --total 2", "3 partitions"),
    "option of a broker is misspelt": Typed(
        LIST, "up -o num.partition=3", "did you mean num.partitions?"
    ),
}


class Written(NamedTuple):
    """The kind of the public place, a pipeline file, and the sentence of `ottla pipeline check`."""

    asked_in: str
    text: str
    said: str
    within_s: float = 1.0


_SOURCE = "sources:\n  a: {topic: a, format: json, schema: {x: int}}\n"
PIPELINES = {
    "step is misspelt": Written(
        FORUM, f"name: p\n{_SOURCE}steps:\n  b: {{from: a, do: [{{wehre: x > 1}}]}}\n", "where"
    ),
    "source is misspelt": Written(
        FORUM,
        f"name: p\n{_SOURCE}steps:\n  b: {{from: aa, do: [{{where: x > 1}}]}}\n",
        "there is no source or step aa. Did you mean a?",
    ),
    "tab": Written(
        QUESTION, "name: p\nsources:\n\ta: {topic: a}\n", "indent with spaces, not with tabs"
    ),
}
OTHERS = {
    "topology: a table is written": Mistake(
        QUESTION, lambda _: StreamsBuilder().table("a").to("b"), "to_stream"
    ),
    "topology: Java's names": Mistake(
        QUESTION, lambda _: StreamsBuilder().stream("a").groupByKey(), "group_by_key"
    ),
    "topology: nothing is built": Mistake(
        ISSUE, lambda _: TopologyTestDriver(StreamsBuilder()), "build"
    ),
    "test: an option is misspelt": Mistake(
        ISSUE,
        lambda _: Cluster(options={"num.partition": "3"}).start(),
        "did you mean num.partitions?",
    ),
    "test: no broker": Mistake(FORUM, lambda _: Cluster(0), "a cluster has at least one broker"),
    "test: the cluster is not started": Mistake(
        FORUM, lambda _: Cluster().create_topic("a"), "use `with Cluster()"
    ),
}


@pytest.mark.parametrize("name", [*CLIENTS, *OTHERS])
def test_call_explains_a_mistake(name: str, cluster: Cluster) -> None:
    """The exception of the call has the sentence."""
    mistake = CLIENTS.get(name) or OTHERS[name]
    started = time.monotonic()
    with pytest.raises(Exception, match=re.escape(mistake.said)):
        mistake.call(cluster)
    assert time.monotonic() < started + mistake.within_s + GRACE_S


@pytest.mark.parametrize("name", COMMANDS)
def test_command_explains_a_mistake(
    name: str, cluster: Cluster, run_alone: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Standard error has the sentence."""
    typed = COMMANDS[name]
    monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path))
    started = time.monotonic()
    done = run_alone(*typed.words.split(), stdin=typed.stdin)
    assert typed.said in done.errors
    assert time.monotonic() < started + typed.within_s + GRACE_S


@pytest.mark.parametrize("name", PIPELINES)
def test_check_of_a_pipeline_explains_a_mistake(name: str, run_alone: Any, tmp_path: Path) -> None:
    """The line has the name that is wrong."""
    row = PIPELINES[name]
    path = tmp_path / "pipeline.yaml"
    path.write_text(row.text, encoding="utf-8")
    started = time.monotonic()
    done = run_alone("pipeline", "check", str(path))
    assert row.said in done.out.decode() + done.errors
    assert time.monotonic() < started + row.within_s + GRACE_S


def test_callback_that_is_async_is_explained(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """It runs in the thread of reports, whose errors are logged."""
    call_back_async(cluster)
    assert "pass a plain function" in caplog.text


def test_the_table_has_forty_rows_of_public_places() -> None:
    """Each row names the kind of its source."""
    rows = [*CLIENTS.values(), *COMMANDS.values(), *PIPELINES.values(), *OTHERS.values()]
    assert len(rows) >= 40
    assert {row.asked_in for row in rows} == {QUESTION, FORUM, ISSUE, LIST}
