"""The coordination tree of a broker whose other files are slow."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.cluster.zk.embedded import EmbeddedTree


async def test_changes_do_not_wait_for_syncs_of_partitions(tmp_path: Path) -> None:
    """A change is durable while all threads of the pool wait for a slow disk."""
    loop, is_over, files = asyncio.get_running_loop(), threading.Event(), RealFileSystem()
    loop.set_default_executor(ThreadPoolExecutor(2))
    tree = EmbeddedTree(files, RealClock(), str(tmp_path / "coordination"))
    syncs = [asyncio.ensure_future(files.in_background(lambda: is_over.wait(60))) for _ in range(8)]
    try:
        async with asyncio.timeout(10):
            await tree.session().create("/topics")
            assert await tree.session().exists("/topics") is not None
            assert not is_over.is_set()
    finally:
        is_over.set()
        await asyncio.gather(*syncs)
        await tree.close()
