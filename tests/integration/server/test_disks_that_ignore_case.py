"""Topics whose names differ only in case, on disks on which both would be one folder."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.files import RealFileSystem
from ottla.base.rng import SeededRng
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.server.node import Node
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from tests.case_folding import CaseFoldingFiles
from tests.unit.storage.world import TOPIC_ID, World, make_batch, offsets


@asynccontextmanager
async def running(folder: Path, files: RealFileSystem) -> AsyncIterator[str]:
    """Run a broker, and yield its address."""
    settings = {"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"}
    node = Node(settings, files=files)
    await node.start()
    try:
        yield f"{node.host}:{node.port}"
    finally:
        await node.stop()


async def create(bootstrap: str, *names: str) -> list[str]:
    """Create topics, and return the names of all."""

    def work() -> list[str]:
        with Brokers(bootstrap) as brokers:
            for name in names:
                topics.create_topic(brokers, name)
            return sorted(row.name for row in topics.list_topics(brokers))

    return await asyncio.to_thread(work)


async def test_the_second_of_two_topics_is_refused(tmp_path: Path) -> None:
    """The error names both topics; after a restart the first one is there, and still refuses."""
    files = CaseFoldingFiles(str(tmp_path))
    async with running(tmp_path / "data", files) as bootstrap:
        assert await create(bootstrap, "Orders") == ["Orders"]
        with pytest.raises(ApiError, match=r"'orders'.*'Orders' only in case") as refusal:
            await create(bootstrap, "orders")
        assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    async with running(tmp_path / "data", files) as bootstrap:
        with pytest.raises(ApiError, match="only in case"):
            await create(bootstrap, "ORDERS")
        assert await create(bootstrap, "other") == ["Orders", "other"]


async def test_other_disks_have_both_topics(tmp_path: Path) -> None:
    """Kafka distinguishes case."""
    async with running(tmp_path / "data", RealFileSystem()) as bootstrap:
        assert await create(bootstrap, "Orders", "orders") == ["Orders", "orders"]


async def test_a_broker_with_both_topics_does_not_start_there(tmp_path: Path) -> None:
    """A directory that comes from another disk has the tree with both topics, and one folder."""
    async with running(tmp_path / "data", RealFileSystem()) as bootstrap:
        await create(bootstrap, "Orders", "orders", "other")
    folder = CaseFoldingFiles(str(tmp_path))
    folder.remove_tree(str(tmp_path / "data" / "orders-0"))
    with pytest.raises(ConfigError, match=r"'Orders' and 'orders' differ only in case.*log\.dirs"):
        async with running(tmp_path / "data", folder):
            pass


def test_a_log_never_gets_the_folder_of_another_topic(tmp_path: Path) -> None:
    """A controller on another disk may create the second topic: its replica here has an error."""
    world = World(tmp_path / "data", LogConfig())
    directories = LogDirectories.open(
        [str(tmp_path / "data")],
        files=CaseFoldingFiles(str(tmp_path)),
        clock=world.clock,
        rng=SeededRng(1),
        broker_id=1,
    )
    log = directories.create("a", 0, TOPIC_ID, LogConfig())
    log.append_as_leader(make_batch(), 0)
    with pytest.raises(ApiError, match="has a-0: A-0 would be in the same folder") as refusal:
        directories.create("A", 0, b"\1" * 16, LogConfig())
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    directories.create("A", 1, b"\1" * 16, LogConfig())
    assert offsets(log) == [0]
    directories.close()
