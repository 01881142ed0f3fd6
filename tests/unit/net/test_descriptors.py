"""Connections and the descriptors that files need, on virtual time (ottla.testing.sim)."""

import asyncio
import logging
import struct

import pytest

from ottla.base.platform import descriptors
from ottla.net.descriptors import DescriptorLimit

from .test_receive_budget import BODY, Client, Scene, Site, play

__all__ = ["play"]

CONNECTIONS_MAX = 40


@pytest.fixture
def limited(monkeypatch, play):
    """Run a scenario with descriptors for 40 connections."""
    monkeypatch.setattr(descriptors, "soft_limit", lambda: 1024)

    def run(scene: Scene) -> None:
        async def with_limit(site: Site) -> None:
            limit = DescriptorLimit(lambda: 0, 1024 - 96 - CONNECTIONS_MAX)
            assert limit.connections_max == CONNECTIONS_MAX
            site.endpoint.limit_descriptors(limit)
            await scene(site)

        play(with_limit)

    return run


def test_descriptors_for_logs_are_reserved(monkeypatch) -> None:
    """Every log needs its active segment, and some connections are always accepted."""
    monkeypatch.setattr(descriptors, "soft_limit", lambda: 1024)
    logs = [0]
    limit = DescriptorLimit(lambda: logs[0], 20)
    without_logs = limit.connections_max
    logs[0] = 400
    assert without_logs - limit.connections_max >= 400
    logs[0] = 4000
    assert limit.connections_max == 32


def test_silent_connections_are_closed_for_new_ones(limited, caplog) -> None:
    """Among many more connections than fit, honest clients stay, and a new one is served."""

    async def scene(site: Site) -> None:
        honest = [await site.connect("shared") for _ in range(10)]
        for client in honest:
            await client.ask(b"established", 1.0)
        await asyncio.sleep(5.0)
        for _ in range(20):
            silent = [await site.connect("shared") for _ in range(30)]
            await asyncio.sleep(2.0)
            for client in honest:
                await client.ask(b"again", 1.0)
            assert site.endpoint.connections_count <= CONNECTIONS_MAX
            assert any(not client.is_lost for client in silent)
        newcomer = await site.connect("shared")
        await newcomer.ask(b"served", 1.0)

    with caplog.at_level(logging.WARNING):
        limited(scene)
    assert len([record for record in caplog.records if "scarce" in record.getMessage()]) == 1


async def stop_reading(site: Site) -> Client:
    """Return a client that has requested more than the socket accepts and does not read it."""
    client = await site.connect("shared")
    client.transport.pause_reading()
    client.transport.write(struct.pack(">i", len(BODY)) + BODY)
    await asyncio.sleep(1.0)
    return client


def test_connections_that_do_not_read_are_closed_first(limited) -> None:
    """They hold files besides their sockets; even longer idle ones stay, and so does a slow reader."""

    async def scene(site: Site) -> None:
        idle = [await site.connect("shared") for _ in range(CONNECTIONS_MAX - 3)]
        for client in idle:
            await client.ask(b"once", 1.0)
        await asyncio.sleep(20.0)
        unread = [await stop_reading(site) for _ in range(2)]
        slow = await stop_reading(site)
        for _ in range(25):
            await asyncio.sleep(1.0)
            slow.transport.resume_reading()
            await asyncio.sleep(0)
            slow.transport.pause_reading()
        newcomer = await site.connect("shared")
        await newcomer.ask(b"served", 1.0)
        for client in unread:
            client.transport.resume_reading()
        await asyncio.sleep(0.5)
        assert all(client.is_lost for client in unread)
        assert not any(client.is_lost for client in [*idle, slow])

    limited(scene)


def test_connections_that_do_not_read_are_closed_if_files_need_descriptors(
    monkeypatch, play
) -> None:
    """The responses themselves may be ranges of many files, without any new connection."""
    monkeypatch.setattr(descriptors, "soft_limit", lambda: 1024)

    async def scene(site: Site) -> None:
        files = [0]
        site.endpoint.limit_descriptors(DescriptorLimit(lambda: files[0], 0))
        idle = [await site.connect("shared") for _ in range(CONNECTIONS_MAX)]
        for client in idle:
            await client.ask(b"once", 1.0)
        unread = await stop_reading(site)
        await asyncio.sleep(20.0)
        assert site.endpoint.connections_count == CONNECTIONS_MAX + 1
        files[0] = 900
        await asyncio.sleep(2.0)
        assert site.endpoint.connections_count == CONNECTIONS_MAX
        unread.transport.resume_reading()
        await asyncio.sleep(0.5)
        assert unread.is_lost

    play(scene)


def test_new_connections_are_rejected_if_none_is_idle(limited) -> None:
    """Active connections stay open."""

    async def scene(site: Site) -> None:
        clients = [await site.connect("shared") for _ in range(CONNECTIONS_MAX)]
        for client in clients:
            await client.ask(b"at work", 1.0)
        refused = await site.connect("shared")
        await asyncio.sleep(0.5)
        assert refused.is_lost
        for client in clients:
            await client.ask(b"at work", 1.0)

    limited(scene)


def test_idle_connections_are_closed_for_new_ones(limited) -> None:
    """After ten seconds without a request the longest idle connection is closed first."""

    async def scene(site: Site) -> None:
        clients = []
        for _ in range(CONNECTIONS_MAX):
            clients.append(await site.connect("shared"))
            await clients[-1].ask(b"once", 1.0)
        await asyncio.sleep(11.0)
        newcomer = await site.connect("shared")
        await newcomer.ask(b"served", 1.0)
        assert clients[0].is_lost
        assert not clients[-1].is_lost

    limited(scene)
