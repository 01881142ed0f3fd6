"""Streams of the console."""

import asyncio
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from ottla.console.state import ConsoleSettings, open_console
from ottla.console.web.routes import _until_closed, application


def test_a_stream_ends_when_its_reader_leaves() -> None:
    """The source is stopped and closed at once, so that the search of a broker ends, too."""
    seen: list[str] = []

    def chunks() -> Iterator[bytes]:
        try:
            while True:
                yield b"chunk"
        finally:
            seen.append("closed")

    source = chunks()

    async def read_one() -> bytes:
        stream = _until_closed(source, lambda: seen.append("stopped"))
        chunk = await anext(stream)
        # Starlette leaves the stream in the middle.
        await stream.aclose()  # type: ignore[attr-defined]
        return chunk

    assert asyncio.run(read_one()) == b"chunk"
    assert seen == ["stopped", "closed"]


def test_an_internal_error_says_where_its_reason_is() -> None:
    """The response has no details; the console's log has them."""

    async def fail(_: Request) -> Response:
        raise RuntimeError("a secret")

    console = open_console(ConsoleSettings((), ":memory:", first_password="a long password"))
    app = application(console, (), (), [Route("/broken", fail)])
    with TestClient(app, raise_server_exceptions=False) as client:
        response = client.get("/broken")
    console.close()
    assert response.status_code == 500
    assert "its log has the reason" in response.text
    assert "secret" not in response.text
