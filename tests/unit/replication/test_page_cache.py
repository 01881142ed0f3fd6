"""Reading old records into the page cache."""

import errno

from ottla.replication.page_cache import warm
from tests.handlers.logs import LogsBroker


def reads(broker: LogsBroker) -> list[tuple[int, int]]:
    """Return a list of the positions and sizes of reads from now on."""
    seen: list[tuple[int, int]] = []
    file = type(broker.files.open("/data/t-0/00000000000000000000.log"))
    original = file.read_at

    def read_at(self: object, position: int, size_bytes: int) -> bytes:
        seen.append((position, size_bytes))
        return original(self, position, size_bytes)  # type: ignore[arg-type]

    file.read_at = read_at  # type: ignore[method-assign]
    return seen


async def test_the_bytes_of_the_segment_are_read(broker: LogsBroker, monkeypatch) -> None:
    """The read begins at the offset's position, with the requested size and some more."""
    broker.create("t", config={"internal.segment.bytes": "2000"})
    broker.write("t", *[b"x" * 500] * 12)
    file = type(broker.files.open("/data/t-0/00000000000000000000.log"))
    monkeypatch.setattr(file, "read_at", file.read_at)
    seen = reads(broker)
    warm(broker.files, "/data/t-0", 4, 1 << 20)
    assert seen
    assert all(position < 2000 for position, _ in seen)


async def test_deleted_log_is_no_error(broker: LogsBroker) -> None:
    """Warming the cache is optional; the read that follows reports the error."""
    broker.create("t")
    broker.write("t", b"a")
    warm(broker.files, "/data/none-0", 0, 100)
    broker.files.faults.fail("read_at", error=errno.EIO)
    warm(broker.files, "/data/t-0", 0, 100)
    assert broker.partition("t").log.failure is None
