"""The commands of the ZooKeeper shell, on a tree that is served in ZooKeeper's protocol."""

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.base.rng import SystemRng
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import BadVersion, CoordinationError, NodeExists, NoNode, NotEmpty
from ottla.cluster.zk.tree_server import TreeServer
from ottla.net.listener import RealNet
from ottla.tools import main
from ottla.tools.zookeeper import nodes
from ottla.tools.zookeeper.results import WatchedEvent, event_text, lines_of

Run = Callable[[str], Awaitable[list[str]]]


@pytest.fixture
async def address() -> AsyncIterator[str]:
    """Return the address of a server with a tree in memory."""
    tree = EmbeddedTree(RealFileSystem(), RealClock(), is_shared=True)
    server = TreeServer(tree, SystemRng())
    await server.open(RealNet(), "127.0.0.1", 0)
    yield f"127.0.0.1:{server.port}"
    await server.close()
    await tree.close()


@pytest.fixture
async def session(address: str) -> AsyncIterator[LiveSession]:
    """Return a session with the server."""
    session = await LiveSession.begin(address)
    yield session
    await session.close()


@pytest.fixture
def run(session: LiveSession) -> Run:
    """Run one line and return what it shows."""

    async def run(line: str) -> list[str]:
        name, *command_line = line.split()
        return lines_of(await nodes.run(session, name, command_line, lambda event: None))

    return run


async def test_output_has_the_form_of_the_original(run: Run) -> None:
    """Created paths, lists in brackets, data on a line of its own."""
    assert await run("create /a data") == ["Created /a"]
    assert await run("create -s /a/n-") == ["Created /a/n-0000000000"]
    assert await run("create /a/b") == ["Created /a/b"]
    assert await run("ls /a") == ["[b, n-0000000000]"]
    assert await run("ls -R /a") == ["/a", "/a/b", "/a/n-0000000000"]
    assert await run("get /a") == ["data"]
    assert await run("set /a new") == []
    assert await run("get /a") == ["new"]
    assert await run("delete /a/b") == []
    assert await run("deleteall /a") == []
    assert await run("ls /") == ["[zookeeper]"]


async def test_list_of_a_node_has_the_form_of_the_original(run: Run) -> None:
    """Scheme and id, then the permissions; with -s the metadata, too."""
    await run("create /a")
    assert await run("getAcl /a") == ["'world,'anyone", ": cdrwa"]
    lines = await run("getAcl -s /a")
    assert lines[2].startswith("cZxid = ")
    assert await run("setAcl /a world:anyone:cdrwa") == []


async def test_stat_shows_every_field(run: Run) -> None:
    """Eleven lines with the names of ZooKeeper's shell; an ephemeral node names its session."""
    await run("create -e /mine four")
    lines = dict(line.split(" = ", 1) for line in await run("stat /mine"))
    assert list(lines) == ["cZxid", "ctime", "mZxid", "mtime", "pZxid", "cversion", "dataVersion", "aclVersion", "ephemeralOwner", "dataLength", "numChildren"]  # fmt: skip
    assert (lines["dataLength"], lines["numChildren"]) == ("4", "0")
    assert lines["ephemeralOwner"] != "0x0"
    assert (await run("get -s /mine"))[0] == "four"


@pytest.mark.parametrize(
    ("line", "error", "sentence"),
    [
        ("get /none", NoNode, "Node does not exist: /none"),
        ("create /a", NodeExists, "Node already exists: /a"),
        ("delete /a", NotEmpty, "Node not empty: /a"),
        ("set -v 7 /a x", BadVersion, "version No is not valid : /a"),
    ],
)
async def test_errors_are_those_of_zookeepers_shell(
    run: Run, line: str, error: type[CoordinationError], sentence: str
) -> None:
    """A search for the error finds ZooKeeper's own documentation."""
    await run("create /a")
    await run("create /a/b")
    with pytest.raises(error) as failure:
        await run(line)
    assert nodes.sentence_of(failure.value) == sentence


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("look /", "Command not found: look"),
        ("ls", r"usage: ls \[-s\] \[-w\] \[-R\] path"),
        ("ls a", "Path must start with / character"),
        ("get -z /a", "usage: get"),
        ("set -v x /a b", "usage: set"),
        ("delete /a /b", "usage: delete"),
        ("setAcl /a", r"usage: setAcl \[-s\] \[-v version\] \[-R\] path acl"),
        ("setAcl /a world:r", "world:r does not have the form scheme:id:perm"),
        ("setAcl /a world:anyone:r,x", "x does not have the form scheme:id:perm"),
        ("setAcl /a world:anyone:rx", "Unknown perm type: x"),
        ("addauth digest", "usage: addauth scheme auth"),
        ("getAcl a", "Path must start with / character"),
    ],
)
async def test_command_that_is_written_wrongly_shows_its_usage(
    run: Run, line: str, text: str
) -> None:
    """Nothing is sent to the server."""
    with pytest.raises(nodes.UsageError, match=text):
        await run(line)


async def test_watch_announces_every_change(session: LiveSession, run: Run) -> None:
    """A watched node is watched again after each change."""
    announced: asyncio.Queue[WatchedEvent] = asyncio.Queue()
    await nodes.run(session, "watch", ["/a"], announced.put_nowait)
    events = []
    for line in ("create /a", "set /a 1", "create /a/b", "delete /a/b", "delete /a"):
        await run(line)
        async with asyncio.timeout(5):
            events.append(event_text(await announced.get()).rpartition("type:")[2])
        # The next watches are two requests after the event: they are set before the next change.
        for _ in range(4):
            await session.exists("/a")
    names = ("Created", "DataChanged", "ChildrenChanged", "ChildrenChanged", "Deleted")
    assert events == [f"Node{name} path:/a" for name in names]


async def test_each_result_is_a_line_of_json(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line has the command, its path and the parts of the result; errors are sentences."""

    async def shell(lines: Sequence[str], *words: str) -> list[Any]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
        line = ["zookeeper", "shell", "--connect", address, "--output", "json", *words]
        assert await asyncio.to_thread(main.run, line) == 0
        return [json.loads(text) for text in capsys.readouterr().out.splitlines()]

    lines = ["create /a 1", "set /a 2", "create -s /a/n-", "ls /a", "ls -R /", "get -s /a"]
    created, changed, *_, children, paths, data = await shell(lines)
    assert created == {"command": "create", "path": "/a", "created": "/a"}
    assert changed == {"command": "set", "path": "/a"}
    assert children == {"command": "ls", "path": "/a", "children": ["n-0000000000"]}
    assert paths["paths"][:3] == ["/", "/a", "/zookeeper"]
    assert (data["data"], data["stat"]["version"], data["stat"]["children_count"]) == ("2", 1, 1)
    (access,) = await shell([], "getAcl", "/a")
    entry = {"scheme": "world", "id": "anyone", "permissions": "cdrwa"}
    assert access == {"command": "getAcl", "path": "/a", "acl": [entry]}
    assert await shell(["addauth digest u:p"]) == [{"command": "addauth"}]
    usages = await shell(["help"])
    assert {"usage": "get [-s] [-w] path", "help": "Show a node's data."} in usages
    events = await shell(["get -w /a", "set /a 3", *["get /a"] * 4])
    assert {"event": "NodeDataChanged", "path": "/a"} in events
