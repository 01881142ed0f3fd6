"""Streams of the console."""

import asyncio
from collections.abc import Iterator

from ottla.console.web.routes import _until_closed


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
