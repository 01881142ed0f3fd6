"""Stopping a broker is clean during any work, bounded in time, and idempotent."""

import asyncio
import signal
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bench.load import fetch_request
from bench.observed import ObservedBroker
from bench.pauses import Line, fill, produce_frame
from ottla.base.errors import ErrorCode
from ottla.base.files import RealFileSystem
from ottla.client.admin import offsets, topics
from ottla.client.admin.offsets import CommittedOffset
from ottla.client.brokers import Brokers
from ottla.server import listeners
from ottla.server.node import Node
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tests.robustness import bombs

pytestmark = pytest.mark.alone

MIB = 1024 * 1024
LATEST = -1
CLEAN_MARK = ".kafka_cleanshutdown"
SECONDS_MAX = listeners.DRAIN_SECONDS + 15


def listening(folder: Path) -> dict[str, str]:
    return {"log.dirs": str(folder), "listeners": "PLAINTEXT://127.0.0.1:0"}


class GatedFiles(RealFileSystem):
    """Blocks, off the loop, when the log directory is listed, until it is released."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.is_there = threading.Event()
        self.may_go = threading.Event()

    def list(self, path: str) -> list[str]:
        if path == self.folder and threading.current_thread() is not threading.main_thread():
            self.is_there.set()
            assert self.may_go.wait(30)
        return super().list(path)


async def test_start_can_be_cancelled_while_logs_are_loaded(tmp_path: Path) -> None:
    """The loop reacts at once, and nothing prevents another broker from starting."""
    folder = tmp_path / "data"
    files = GatedFiles(folder)
    starting = asyncio.ensure_future(Node(listening(folder), files=files).start())
    await asyncio.to_thread(files.is_there.wait, 30)
    starting.cancel()
    await asyncio.sleep(0)
    files.may_go.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    again = Node(listening(folder))
    await again.start()
    await again.stop()
    assert (folder / CLEAN_MARK).exists()


async def test_stop_can_be_called_twice_and_concurrently(tmp_path: Path) -> None:
    """All calls return when the broker has stopped, also for a broker that never started."""
    node = Node(listening(tmp_path / "data"))
    await node.start()
    await asyncio.gather(*(node.stop() for _ in range(5)))
    await node.stop()
    node.hurry()
    assert (tmp_path / "data" / CLEAN_MARK).exists()
    await Node(listening(tmp_path / "other")).stop()


class Busy:
    """A broker that does several things at the same time."""

    def __init__(self, broker: ObservedBroker, connections: int) -> None:
        self.broker = broker
        config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01",
                  "segment.bytes": str(MIB)}  # fmt: skip
        with Brokers(f"127.0.0.1:{broker.port}") as admin:
            topics.create_topic(admin, "kept", partitions=2)
            topics.create_topic(admin, "compacted", partitions=1, config=config)
            topics.create_topic(admin, "doomed", partitions=20)
            offsets.commit_offsets(admin, "steady", {("kept", 0): CommittedOffset(7)})
        fill(broker.port, "kept", 4 * MIB, partitions=2)
        fill(broker.port, "doomed", 20 * MIB, partitions=20)
        # The cleaner, which never rests, has work for a while.
        fill(broker.port, "compacted", 30 * MIB, keys=4000)
        self.idle = [Line(broker.port) for _ in range(connections)]
        self.parked, self.member, self.deleter, self.heavy = (Line(broker.port) for _ in range(4))
        self.producer = Producer(
            {"bootstrap.servers": f"127.0.0.1:{broker.port}", "transactional.id": "t"}
        )
        self.producer.init_transactions(20)

    def begin(self) -> None:
        """Start a rebalance, a long poll, a deletion, a heavy batch and a transaction."""
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        self.member.send(
            JoinGroupRequest(
                group_id="waiting",
                session_timeout_ms=30_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=[protocol],
            ),
            3,
        )
        self.parked.send_bytes(fetch_request("kept", 0, MIB, offset=10**6))
        self.producer.begin_transaction()
        self.producer.produce("kept", b"undecided", partition=1)
        assert self.producer.flush(10) == 0
        self.heavy.send_bytes(produce_frame("compacted", 0, bombs.swarm(100_000)))
        doomed = DeleteTopicState(name="doomed")
        self.deleter.send(DeleteTopicsRequest(topics=[doomed], timeout_ms=30_000), 6)

    def close(self) -> None:
        """Close every connection."""
        for line in (*self.idle, self.parked, self.member, self.deleter, self.heavy):
            line.close()


@pytest.fixture
def busy(tmp_path: Path):  # type: ignore[no-untyped-def]
    settings = {
        "log.cleaner.backoff.ms": "0",
        "log.segment.delete.delay.ms": "0",
        "group.initial.rebalance.delay.ms": "20000",
        # The idle connections are from one address, and stay.
        "max.unauthenticated.connections": "2000",
        "max.unauthenticated.connections.per.ip": "2000",
        "authentication.timeout.ms": "600000",
    }
    with ObservedBroker(settings, tmp_path / "data") as broker:
        created = Busy(broker, 1000)
        yield created
        created.close()


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2], ids=["once", "twice"])
def test_a_busy_broker_stops_cleanly(busy: Busy, signals: int) -> None:
    """The exit code is 0 during compaction, deletion, rebalance, long poll, transaction and with a
    thousand connections.
    """
    broker = busy.broker
    busy.begin()
    begin = time.monotonic()
    for _ in range(signals - 1):
        broker.send_signal(signal.SIGTERM)
    assert broker.stop(signal.SIGTERM) == 0
    assert time.monotonic() - begin < SECONDS_MAX
    # Waiting requests get a response: the rebalance ends, the long poll returns no records.
    if signals == 1:
        joined = busy.member.receive(JoinGroupResponse, 3)
        assert joined.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert busy.parked.receive_bytes()
    assert (broker.folder / CLEAN_MARK).exists()
    assert not [line for line in broker.lines() if "Traceback" in line]
    broker.start()
    with Brokers(f"127.0.0.1:{broker.port}") as admin:
        ends = offsets.list_offsets(admin, {("kept", 0): LATEST, ("kept", 1): LATEST})
        assert all(end.offset > 0 for end in ends.values())
        assert offsets.committed_offsets(admin, "steady")["kept", 0].offset == 7
    assert not [line for line in broker.lines() if "cutting a damaged log" in line]
    assert broker.stop() == 0


@pytest.mark.slow
def test_a_signal_during_recovery_ends_it(tmp_path: Path) -> None:
    """There is no clean mark, the exit code is 0, and the next start repeats the recovery."""
    broker = ObservedBroker({}, tmp_path / "data")
    with broker:
        with Brokers(f"127.0.0.1:{broker.port}") as admin:
            topics.create_topic(admin, "t", partitions=1)
        fill(broker.port, "t", 600 * MIB)
        broker.stop(signal.SIGKILL)
        for path in broker.folder.glob("recovery-point-offset-checkpoint"):
            path.unlink()
        broker.launch()
        # The logs are read as soon as the directory is locked.
        end = time.monotonic() + 20
        while str(broker.pid) not in (broker.folder / ".lock").read_text():
            assert time.monotonic() < end
        begin = time.monotonic()
        assert broker.stop(signal.SIGTERM) == 0
        assert time.monotonic() - begin < 15
        broker.start()
        with Brokers(f"127.0.0.1:{broker.port}") as admin:
            (result,) = offsets.list_offsets(admin, {("t", 0): LATEST}).values()
        assert result.offset >= 600 * 900
        assert broker.take().rss_mib < 150
        assert broker.stop() == 0
