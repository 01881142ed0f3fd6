"""Responses to clients that cannot authenticate."""

import asyncio
import logging
from types import SimpleNamespace
from typing import cast

import pytest

from ottla.net.connection import Connection
from ottla.server.authentication.refusals import answer_late


async def test_answer_comes_late_and_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log has the beginning of the reason, a part of which the client may have chosen."""
    closed: list[str] = []
    peer = SimpleNamespace(peer_address=("10.0.0.1", 1), close=closed.append)
    with caplog.at_level(logging.WARNING):
        later = answer_late(cast(Connection, peer), "refused", "x" * 30_000, 1)
    assert not later.done()
    assert await later == "refused"
    for _ in range(3):
        await asyncio.sleep(0)
    assert closed == ["the client is not authenticated"]
    (line,) = caplog.messages
    assert line.endswith(f"reason={'x' * 200}")
