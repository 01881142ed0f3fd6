"""The data of a broker is for its user only."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ottla.controller.planning.requests import TopicRequest
from ottla.server.node import Node


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Node]:
    """Run a broker with this log directory."""
    node = Node({"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"})
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


def _open_to_others(folder: Path) -> list[str]:
    """Return the files and folders that other users may read or write."""
    return [
        str(path.relative_to(folder.parent))
        for path in (folder, *folder.rglob("*"))
        if path.stat().st_mode & 0o077
    ]


async def test_other_users_of_the_machine_cannot_read_the_data(tmp_path: Path) -> None:
    """The tree has the secret of the brokers and keys of passwords, the logs have the records."""
    former = os.umask(0)
    try:
        async with running(tmp_path / "data") as node:
            request = TopicRequest("t", 1, 1)
            await node.broker.controller.create_topics([request], validate_only=False)
            assert (tmp_path / "data" / "t-0").is_dir()
    finally:
        os.umask(former)
    assert _open_to_others(tmp_path / "data") == []


async def test_data_of_an_earlier_version_is_restricted_at_the_start(tmp_path: Path) -> None:
    """The folder, which hides the logs, and the files of the tree."""
    folder = tmp_path / "data"
    async with running(folder):
        pass
    for path in (folder, *folder.glob("cluster.*")):
        path.chmod(0o755)
    async with running(folder):
        assert _open_to_others(folder) == []


async def test_folder_with_other_files_keeps_its_permissions(tmp_path: Path) -> None:
    """It may be a folder of the system by mistake; the files of the broker are private."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "hosts").touch(0o644)
    async with running(folder):
        assert sorted(_open_to_others(folder)) == ["data", "data/hosts"]
