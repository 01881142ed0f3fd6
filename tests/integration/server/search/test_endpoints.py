"""/search and /lag of a running broker."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.replication import leading
from ottla.server.monitoring import extensions
from ottla.server.node import Node
from ottla.server.search import searching
from ottla.wire.records.records import Record, encode_batch
from tests.integration.server.test_node import Yard

SETTINGS = {"metrics.listener": "127.0.0.1:0", "search.enable": "true", "num.partitions": "2"}


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    """Yield a yard with a directory of its own."""
    async with Yard(tmp_path / "data") as created:
        yield created


@pytest.fixture
async def node(yard: Yard) -> Node:
    """Return a broker that serves /search, with the topic `a` of two partitions."""
    running = await yard.start(settings=SETTINGS)
    client = await yard.client(running)
    await client.metadata("a")
    return running


def append(node: Node, *values: bytes, partition: int = 0, **words: Any) -> None:
    """Append one batch to the topic `a`."""
    records = [Record(None, value, (), words.get("timestamp", 1000)) for value in values]
    log = node.broker.replicas.get("a", partition)
    log.append_as_leader(encode_batch(records), acks=1)


async def request(node: Node, target: str, *, host: str = "127.0.0.1") -> tuple[int, bytes]:
    """Return the status and the body of a response."""
    assert node.monitoring_address is not None
    reader, writer = await asyncio.open_connection(*node.monitoring_address)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), body


async def rows_of(node: Node, target: str) -> list[dict[str, Any]]:
    """Return the rows of a successful response."""
    status, body = await request(node, target)
    assert status == 200, body
    return [json.loads(line) for line in body.splitlines()]


def matches(rows: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return partition and offset of each match."""
    return [(row["partition"], row["offset"]) for row in rows if row["type"] == "match"]


async def test_search_returns_matches_between_start_and_end(node: Node) -> None:
    """The first row has the ranges, the last one the totals and the offsets to resume at."""
    append(node, b"apple", b"pear")
    append(node, b"apple", partition=1)
    rows = await rows_of(node, "/search?topic=a&value=apple")
    assert rows[0] == {
        "type": "start", "topic": "a", "broker": 1, "elsewhere": [],
        "partitions": [{"partition": 0, "from": 0, "to": 2}, {"partition": 1, "from": 0, "to": 1}],
    }  # fmt: skip
    assert matches(rows) == [(0, 0), (1, 0)]
    end = rows[-1]
    assert (end["type"], end["reason"], end["matches"], end["records"]) == ("end", "complete", 2, 3)
    assert end["partitions"] == [{"partition": 0, "next_offset": 2}, {"partition": 1, "next_offset": 1}]  # fmt: skip


async def test_search_of_many_chunks_and_segments(yard: Yard) -> None:
    """Every record is found once, across chunks, batches and segments."""
    node = await yard.start(settings={**SETTINGS, "log.segment.bytes": "1048576"})
    client = await yard.client(node)
    await client.metadata("a")
    for number in range(30):
        append(node, *(b"%d:%d:" % (number, n) + b"x" * 1000 for n in range(100)))
    assert len(node.broker.replicas.get("a", 0).log.segments) > 2
    rows = await rows_of(node, "/search?topic=a&value=:7:&limit=0")
    assert matches(rows) == [(0, number * 100 + 7) for number in range(30)]


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("from=1", [1, 2, 3]),
        ("from=1&to=3", [1, 2]),
        ("from=-2", [2, 3]),
        ("to=-3", [0]),
        ("from=@2000", [2, 3]),
        ("to=@2000", [0, 1]),
        ("from=end", []),
        ("from=9&to=2", []),
        ("limit=2", [0, 1]),
    ],
)
async def test_positions(node: Node, span: str, expected: list[int]) -> None:
    """Offsets, counts from the end and times are looked up once, at the beginning."""
    append(node, b"0", b"1", timestamp=1000)
    append(node, b"2", b"3", timestamp=2000)
    rows = await rows_of(node, f"/search?topic=a&partition=0&{span}")
    assert [offset for _, offset in matches(rows)] == expected


async def test_read_committed_ends_at_the_last_stable_offset(node: Node) -> None:
    """Records of an open transaction are found only by a search that is not read_committed."""
    log = node.broker.replicas.get("a", 0)
    append(node, b"plain")
    settings = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    log.append_as_leader(encode_batch([Record(None, b"open", (), 1)], **settings), acks=1)
    everything = await rows_of(node, "/search?topic=a&isolation=read_uncommitted")
    assert len(matches(everything)) == 2
    assert matches(await rows_of(node, "/search?topic=a")) == [(0, 0)]


async def test_closing_the_connection_cancels_the_search(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generator is closed, and another search may begin."""
    append(node, *(b"%d" % n for n in range(5000)))
    monkeypatch.setattr(searching, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(extensions, "SEARCHES_MAX", 1)
    assert node.monitoring_address is not None
    reader, writer = await asyncio.open_connection(*node.monitoring_address)
    writer.write(b"GET /search?topic=a&value=nothing&ignore_case=true HTTP/1.1\r\n\r\n")
    await reader.readuntil(b'"type":"start"')
    status, _ = await request(node, "/search?topic=a")
    assert status == 503
    # A client that is killed, and has read everything, does the same.
    writer.write_eof()
    async with asyncio.timeout(5):
        while (await request(node, "/search?topic=a&to=0"))[0] == 503:
            # The broker returns 503 until it has noticed the end of the connection.
            pass
    writer.close()


async def test_progress_is_reported(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows count records and bytes, and name the position."""
    append(node, b"0", b"1")
    monkeypatch.setattr(searching, "PROGRESS_SECONDS", 0.0)
    rows = await rows_of(node, "/search?topic=a&value=nothing&ignore_case=true")
    progress = [row for row in rows if row["type"] == "progress"][-1]
    assert (progress["records"], progress["next_offset"], progress["remaining"]) == (2, 2, 0)


async def test_search_is_off_by_default(yard: Yard) -> None:
    """The reason names the option, and no record is read."""
    node = await yard.start(settings={"metrics.listener": "127.0.0.1:0"})
    status, body = await request(node, "/search?topic=a")
    assert (status, b"search.enable=true" in body) == (403, True)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9", 200), ("localhost", 200), ("[::1]:9", 200),
        ("evil.example", 403), ("evil.example:80", 403), ("", 403),
    ],
)  # fmt: skip
async def test_host_of_a_web_page_is_rejected(node: Node, host: str, status: int) -> None:
    """A page whose name was rebound to this address cannot read records (DNS rebinding)."""
    pages = (
        "/search?topic=a",
        "/lag",
        "/metrics",
        "/jmx",
        "/clients",
        "/metrics/clients",
        "/healthz",
    )
    for page in pages:
        assert (await request(node, page, host=host))[0] == status


async def test_operator_allows_other_hosts(yard: Yard) -> None:
    """Prometheus may reach the port by a name that the broker does not know."""
    settings = {**SETTINGS, "metrics.allowed.hosts": "*.example,metrics.test"}
    node = await yard.start(settings=settings)
    assert (await request(node, "/metrics", host="kafka.example:9308"))[0] == 200
    assert (await request(node, "/metrics", host="metrics.test"))[0] == 200
    assert (await request(node, "/metrics", host="evil.test"))[0] == 403
    await node.stop()
    own = await yard.start(settings={**SETTINGS, "advertised.listeners": "PLAINTEXT://b.example:1"})
    assert (await request(own, "/metrics", host="B.example:9308"))[0] == 200


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("", 400, b"topic is missing"),
        ("topic=missing", 404, b"There is no topic 'missing'"),
        ("topic=a&partition=7", 404, b"no partition 7"),
        ("topic=a&value_regex=(", 400, b"not a valid regular expression"),
        ("topic=a&json=x", 400, b"does not begin with $"),
    ],
)
async def test_wrong_search_is_a_sentence(
    node: Node, query: str, status: int, sentence: bytes
) -> None:
    """The response is plain text."""
    actual, body = await request(node, f"/search?{query}")
    assert (actual, sentence in body) == (status, True)


async def test_lag_of_a_position_is_the_age_of_its_next_record(node: Node) -> None:
    """Compaction and deletion may have removed the record at the position itself."""
    now = node.broker.clock.time_ms()
    append(node, b"0", b"1", timestamp=now - 60_000)
    append(node, b"2", timestamp=now - 30_000)
    (row, end) = await rows_of(node, "/lag?position=a:0:1")
    assert (row["next_offset"], row["lag"], row["ts"]) == (1, 2, now - 60_000)
    assert 60 <= row["seconds"] < 70
    assert (end["type"], end["rows"]) == ("end", 1)
    leading.delete_records(node.broker.replicas.get("a", 0), 2)
    (row, _) = await rows_of(node, "/lag?position=a:0:1")
    assert (row["next_offset"], row["ts"]) == (2, now - 30_000)


async def test_lag_of_a_reader_at_the_end_is_zero(node: Node) -> None:
    """It has neither a next record nor a timestamp."""
    append(node, b"0")
    (row, _) = await rows_of(node, "/lag?position=a:0:1")
    assert (row["lag"], row["seconds"], "next_offset" in row) == (0, 0, False)


async def test_lag_skips_transaction_markers(node: Node) -> None:
    """A marker is no record that a group reads."""
    settings = {"producer_id": 5, "producer_epoch": 0, "transactional": True}
    log = node.broker.replicas.get("a", 0)
    marker = [Record(b"\0\0\0\1", b"\0\0\0\0\0\0", (), 1)]
    log.append_as_leader(encode_batch(marker, control=True, **settings), acks=1, from_client=False)
    (row, _) = await rows_of(node, "/lag?position=a:0:0")
    assert (row["lag"], row["seconds"]) == (1, 0)


async def test_lag_of_unknown_places(node: Node) -> None:
    """Unknown topics and groups have rows of their own; other errors do not end the report."""
    rows = await rows_of(node, "/lag?position=none:0:0&position=a:1:0&group=g")
    assert rows[0] == {"type": "elsewhere", "group": "g"}
    assert [row.get("error") for row in rows[1:3]] == ["UNKNOWN_TOPIC_OR_PARTITION", None]
    assert (await request(node, "/lag?position=x"))[0] == 400
