"""`/jmx` of a running node, in the forms of JMXJsonServlet and Jolokia."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ottla.server.node import Node
from tests.integration.server.monitoring.test_metrics import SETTINGS, get
from tests.integration.server.test_node import Yard


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """Yield a node with a topic of two partitions and one record."""
    yard = Yard(tmp_path / "data")
    started = await yard.start(settings=SETTINGS)
    client = await yard.client(started)
    await client.metadata("a")
    await client.produce("a", b"value")
    client.writer.close()
    yield started
    await started.stop()


async def ask(node: Node, path: str, *, status: int = 200) -> Any:
    result, body = await get(node, path)
    assert result == status, body
    return json.loads(body)


async def test_all_beans_are_listed_with_their_attributes(node: Node) -> None:
    """A bean comes once, also if several of its attributes are metrics of their own."""
    beans = (await ask(node, "/jmx"))["beans"]
    names = [bean["name"] for bean in beans]
    assert len(names) == len(set(names)) > 100
    by_name = dict(zip(names, beans, strict=True))
    assert by_name["kafka.server:type=ReplicaManager,name=LeaderCount"]["Value"] == 2
    messages = by_name["kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=a"]
    assert messages["Count"] == 1
    assert messages["MeanRate"] > 0
    sockets = by_name[
        "kafka.server:type=socket-server-metrics,listener=PLAINTEXT,networkProcessor=0"
    ]
    assert {"connection-count", "connection-creation-total"} < sockets.keys()
    times = by_name["kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce"]
    assert times["Count"] == 16
    assert times["99thPercentile"] > 0
    assert by_name["kafka.server:type=SessionExpireListener,name=SessionState"]["Value"] == (
        "CONNECTED"
    )


async def test_servlet_selects_by_pattern_and_attribute(node: Node) -> None:
    """`qry` takes a pattern, `get` one attribute of a bean."""
    pattern = quote("kafka.log:type=Log,name=LogEndOffset,*")
    beans = (await ask(node, f"/jmx?qry={pattern}"))["beans"]
    assert [bean["Value"] for bean in beans] == [1, 0]
    name = "kafka.log:type=Log,name=LogEndOffset,topic=a,partition=0"
    (bean,) = (await ask(node, f"/jmx?get={quote(name)}::Value"))["beans"]
    assert bean == {"name": name, "modelerType": "ottla", "Value": 1}
    assert (await ask(node, "/jmx?qry=kafka.none:*"))["beans"] == []
    for query, status in (
        ("qry=kafka.log", 400),
        ("get=kafka.log:type=Log", 400),
        ("get=kafka.log:type=None::Value", 404),
        (f"get={quote(name)}::Count", 404),
    ):
        assert (await ask(node, f"/jmx?{query}", status=status))["result"] == "ERROR"


async def test_jolokia_reads_beans_and_attributes(node: Node) -> None:
    """One attribute is a value, several are an object, and a pattern gives an object of beans."""
    name = "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec"
    response = await ask(node, f"/jmx/read/{name}/Count")
    assert (response["status"], response["value"]) == (200, 1)
    assert response["request"] == {"type": "read", "mbean": name, "attribute": "Count"}
    assert response["timestamp"] > 10**9
    several = (await ask(node, f"/jmx/read/{name}/Count,RateUnit"))["value"]
    assert several == {"Count": 1, "RateUnit": "SECONDS"}
    beans = (await ask(node, "/jmx/read/kafka.log:type=Log,name=Size,*/Value"))["value"]
    assert [bean["Value"] > 0 for bean in beans.values()] == [True, False]


async def test_jolokia_searches_and_lists(node: Node) -> None:
    """Tools discover the beans first."""
    response = (await ask(node, "/jmx/search/kafka.server:type=ReplicaManager,name=Isr*"))["value"]
    assert response == [
        "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec",
        "kafka.server:type=ReplicaManager,name=IsrExpandsPerSec",
    ]
    domains = (await ask(node, "/jmx/list"))["value"]
    assert {"kafka.server", "kafka.log", "kafka.controller", "kafka.network"} <= domains.keys()
    assert (await ask(node, "/jmx/list/kafka.log"))["value"] == domains["kafka.log"]
    leaders = domains["kafka.server"]["type=ReplicaManager,name=LeaderCount"]
    assert leaders["attr"] == {"Value": {"rw": False, "type": "long"}}
    assert (await ask(node, "/jmx/"))["value"]["info"]["product"] == "ottla"


async def test_jolokia_reads_a_bean_with_a_slash_in_its_name(node: Node) -> None:
    """Jolokia escapes a slash with an exclamation mark."""
    directory = node.broker.replicas.directories.directories()[0].path.replace("/", "!/")
    name = f"kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory={directory}"
    assert (await ask(node, f"/jmx/read/{quote(name, safe='/')}/Value"))["value"] == 0


@pytest.mark.parametrize(
    ("path", "error", "status"),
    [
        ("/jmx/read/kafka.none:type=None", "javax.management.InstanceNotFoundException", 404),
        (
            "/jmx/read/kafka.server:type=ReplicaManager,name=LeaderCount/Count",
            "javax.management.AttributeNotFoundException",
            404,
        ),
        ("/jmx/read/nonsense", "javax.management.MalformedObjectNameException", 400),
        ("/jmx/read", "java.lang.IllegalArgumentException", 400),
        ("/jmx/exec/x/y", "java.lang.IllegalArgumentException", 400),
    ],
)
async def test_errors_of_jolokia_are_in_the_body(
    node: Node, path: str, error: str, status: int
) -> None:
    """Jolokia's clients read the status from the body."""
    response = await ask(node, path)
    assert (response["error_type"], response["status"]) == (error, status)
    assert error in response["error"]
