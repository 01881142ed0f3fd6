"""Code shared by export and import: the two trees, and the copy from one to the other."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.cluster import zookeeper_transfer
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.journal import JOURNAL_PREFIX
from ottla.cluster.zk.port import Coordination
from ottla.tools import options
from ottla.tools.broker.defaults import DEFAULT_DATA
from ottla.tools.output import Output, ProgressBar
from ottla.tools.zookeeper.sessions import begin

OpenTree = AbstractAsyncContextManager[Coordination]


def between(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --data, --connect, --replace, --dry-run and --output to a command."""
    for option in (
        options.formatted,
        click.option(
            "--replace",
            is_flag=True,
            help="Replace the target's metadata of the same cluster, to move back.",
        ),
        click.option("--dry-run", is_flag=True, help="Show the nodes without copying them."),
        click.option(
            "--connect",
            metavar="HOST:PORT[/PATH]",
            required=True,
            help="The ZooKeeper ensemble, as in Kafka's zookeeper.connect.",
        ),
        click.option(
            "--data",
            metavar="DIR",
            default=DEFAULT_DATA,
            show_default=True,
            type=click.Path(file_okay=False, path_type=Path),
            help="The first log directory of the broker, or its coordination.dir. The broker must "
            "not be running.",
        ),
    ):
        function = option(function)
    return function


@asynccontextmanager
async def directory(data: Path, *, must_exist: bool) -> AsyncIterator[Coordination]:
    """Open the metadata tree that Ottla stores in a log directory."""
    if must_exist and not any(data.glob(f"{JOURNAL_PREFIX}*")):
        raise ConfigError(
            f"{data} contains no Ottla cluster: name the first log directory of a broker, or its "
            "coordination.dir, with --data"
        )
    tree = EmbeddedTree(RealFileSystem(), RealClock(), str(data))
    try:
        yield tree.session()
    finally:
        await tree.close()


@asynccontextmanager
async def ensemble(connect: str) -> AsyncIterator[Coordination]:
    """Open a session with a ZooKeeper ensemble."""
    session = await begin(connect)
    try:
        yield session
    finally:
        await session.close()


class TreeCopy(NamedTuple):
    """The source and the target of a copy; `name` is the target's name, `adapt` changes its nodes."""

    source: OpenTree
    target: OpenTree
    name: str
    adapt: Callable[[Sequence[zookeeper_transfer.Znode]], list[zookeeper_transfer.Znode]]


def copy(output: Output, tree_copy: TreeCopy, *, replace: bool, dry_run: bool) -> None:
    """Copy all nodes and print them; with `dry_run`, only print them."""
    nodes = asyncio.run(_copy(tree_copy, replace=replace, dry_run=dry_run))
    if dry_run:
        rows = [{"path": node.path, "bytes": len(node.data)} for node in nodes]
        output.rows(rows, ("path", "bytes"))
        return
    name = tree_copy.name
    output.done(f"Copied {len(nodes)} nodes to {name}.", nodes=len(nodes), target=name)


async def _copy(
    tree_copy: TreeCopy, *, replace: bool, dry_run: bool
) -> list[zookeeper_transfer.Znode]:
    async with tree_copy.source as source:
        nodes = tree_copy.adapt(await zookeeper_transfer.read(source))
        if not nodes:
            raise ConfigError("nothing to copy: the tree is empty")
        if dry_run:
            return nodes
        async with tree_copy.target as target:
            await zookeeper_transfer.check_vacant(target, tree_copy.name, nodes, replace=replace)
            await zookeeper_transfer.remove_others(target, nodes)
            with ProgressBar("nodes", len(nodes)) as progress:
                async for count in zookeeper_transfer.write(target, nodes):
                    progress.advance(count)
    return nodes
