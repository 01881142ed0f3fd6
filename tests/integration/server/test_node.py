"""The node: start, use, stop and restart."""

import asyncio
import errno
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError, ErrorCode, StorageError
from ottla.base.files import RealFile, RealFileSystem, open_descriptor
from ottla.base.rng import SeededRng
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.znodes import BrokerIdNode
from ottla.controller.planning.elections import ElectionType
from ottla.server.node import Node
from ottla.wire import headers
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.handlers.logs import batch, values


class Client:
    """Sends one request after the other on one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, request: Any, version: int) -> None:
        body = headers.encode_request(request, version, 1, "test")
        self.writer.write(struct.pack(">i", len(body)) + body)

    async def receive(self, response: type[Any], version: int) -> Any:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return headers.decode_response(response, version, await self.reader.readexactly(size))[1]

    async def metadata(self, *topics: str) -> Any:
        named = [MetadataRequestTopic(name=name) for name in topics]
        self.send(MetadataRequest(topics=named or None), 9)
        return await self.receive(MetadataResponse, 9)

    async def produce(self, topic: str, value: bytes, acks: int = -1) -> Any:
        data = PartitionProduceData(index=0, records=bytes(batch(value)))
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        self.send(ProduceRequest(acks=acks, timeout_ms=5000, topic_data=topics), 9)
        response = await self.receive(ProduceResponse, 9)
        return response.responses[0].partition_responses[0]

    def begin_fetch(self, topic: str, offset: int, max_wait_ms: int) -> None:
        partition = FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=topic, partitions=[partition])]
        self.send(FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics), 12)

    async def fetch(self, topic: str, offset: int = 0) -> list[bytes | None]:
        self.begin_fetch(topic, offset, 0)
        response = await self.receive(FetchResponse, 12)
        return values(response.responses[0].partitions[0].records)


class Yard:
    """Starts nodes and clients, and stops them after the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nodes: list[Node] = []
        self.clients: list[Client] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for node in self.nodes:
            await node.stop()
        for client in self.clients:
            client.writer.close()
            await asyncio.gather(client.writer.wait_closed(), return_exceptions=True)

    def make(self, **ports: Any) -> Node:
        settings = {
            "log.dirs": str(self.folder),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            **ports.pop("settings", {}),
        }
        node = Node(settings, **ports)
        self.nodes.append(node)
        return node

    async def start(self, **ports: Any) -> Node:
        node = self.make(**ports)
        await node.start()
        return node

    async def client(self, node: Node) -> Client:
        client = Client(*await asyncio.open_connection(node.host, node.port))
        self.clients.append(client)
        return client


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    """Yield a yard with a directory of its own."""
    async with Yard(tmp_path / "data") as created:
        yield created


async def test_first_use_works_at_once(yard: Yard) -> None:
    """A topic is created on first use, and a record is produced and fetched."""
    client = await yard.client(await yard.start())
    response = await client.metadata("t")
    assert (response.topics[0].error_code, response.topics[0].partitions[0].leader_id) == (0, 1)
    assert (await client.produce("t", b"hello")).error_code == 0
    assert await client.fetch("t") == [b"hello"]


async def test_node_is_ready_in_a_tenth_of_a_second(yard: Yard) -> None:
    """The best of three starts counts; imports are measured elsewhere."""
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        node = await yard.start()
        seconds.append(time.perf_counter() - begin)
        await node.stop()
    assert min(seconds) < 0.1


async def test_a_restart_loses_nothing(yard: Yard) -> None:
    """Cluster id, topics, topic ids, records and offsets survive a restart."""
    node = await yard.start()
    client = await yard.client(node)
    first = await client.metadata("t")
    for number in range(3):
        await client.produce("t", b"%d" % number)
    cluster_id, topic_id = node.cluster_id, node.broker.image.topics["t"].topic_id
    await node.stop()
    again = await yard.start()
    client = await yard.client(again)
    second = await client.metadata("t")
    assert again.cluster_id == cluster_id
    assert again.broker.image.topics["t"].topic_id == topic_id
    assert second.topics[0].partitions[0].leader_epoch > (
        first.topics[0].partitions[0].leader_epoch
    )
    assert await client.fetch("t") == [b"0", b"1", b"2"]
    assert (await client.produce("t", b"3")).base_offset == 3


async def test_stop_answers_delayed_requests(yard: Yard) -> None:
    """A delayed fetch gets its response, and then the connection is closed."""
    node = await yard.start()
    client = await yard.client(node)
    await client.metadata("t")
    client.begin_fetch("t", 0, 60_000)
    while not node.broker.replicas.get("t", 0).waiters:
        await asyncio.sleep(0)
    await node.stop()
    response = await client.receive(FetchResponse, 12)
    assert response.responses[0].partitions[0].error_code == 0
    assert await client.reader.read() == b""


async def test_stop_may_be_called_often_and_at_once(yard: Yard) -> None:
    """All concurrent callers of `stop` return when the node has stopped."""
    node = await yard.start()
    client = await yard.client(node)
    await client.metadata("t")
    first, second = asyncio.create_task(node.stop()), asyncio.create_task(node.stop())
    await second
    assert first.done()
    assert await client.reader.read() == b""
    await node.stop()
    again = await yard.start()
    response = await (await yard.client(again)).metadata()
    assert [topic.name for topic in response.topics] == ["t"]


async def test_stop_before_start_is_harmless(yard: Yard) -> None:
    """A node that was not started has nothing to stop."""
    await yard.make().stop()
    assert not yard.folder.exists()


async def test_used_port_is_an_error_with_advice(yard: Yard) -> None:
    """The parts that were started before the error are stopped again."""
    node = await yard.start()
    received = {"listeners": f"PLAINTEXT://127.0.0.1:{node.port}", "log.dirs": f"{yard.folder}2"}
    with pytest.raises(ConfigError, match=r"Cannot listen on .*choose another port"):
        await yard.start(settings=received)
    await yard.start(settings={"log.dirs": f"{yard.folder}2"})


async def test_locked_directory_is_an_error_with_advice(yard: Yard) -> None:
    """Two brokers with the same directory would destroy it."""
    await yard.start()
    with pytest.raises(StorageError, match="another"):
        await yard.start()


async def test_listener_that_is_not_secure_is_refused_unless_it_is_intended(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    """Other machines could do everything; the warning comes at each start."""
    settings = {"listeners": "PLAINTEXT://0.0.0.0:0"}
    with pytest.raises(ConfigError, match=r"or set allow\.insecure\.listeners=true if this is int"):
        yard.make(settings=settings)
    assert not yard.folder.exists()
    for _ in range(2):
        caplog.clear()
        yard.make(settings={**settings, "allow.insecure.listeners": "true"})
        assert "the listener PLAINTEXT on 0.0.0.0 has neither TLS nor SASL" in caplog.text


async def test_settings_are_checked_before_anything_is_touched(yard: Yard) -> None:
    """The error names the invalid value."""
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        yard.make(settings={"num.partitions": "none"})
    assert not yard.folder.exists()


async def test_clients_get_the_address_of_their_connection(yard: Yard) -> None:
    """The address comes from the connection, also if the broker listens on all interfaces."""
    settings = {"listeners": "PLAINTEXT://0.0.0.0:0", "allow.insecure.listeners": "true"}
    node = await yard.start(settings=settings)
    assert node.host == "127.0.0.1"
    client = await yard.client(node)
    response = await client.metadata()
    assert [(item.host, item.port) for item in response.brokers] == [("127.0.0.1", node.port)]


async def test_advertised_listeners_are_returned_and_registered(yard: Yard) -> None:
    """The advertised address is returned, whatever address the client used."""
    tree = EmbeddedTree(RealFileSystem(), yard.make()._clock)
    node = await yard.start(
        tree=tree, settings={"advertised.listeners": "PLAINTEXT://public.example:99"}
    )
    response = await (await yard.client(node)).metadata()
    assert [(item.host, item.port) for item in response.brokers] == [("public.example", 99)]
    session = tree.session()
    data, _ = await session.get(BrokerIdNode.path(1))
    assert b"public.example" in data
    await session.close()
    await node.stop()
    await tree.close()


async def test_several_listeners_serve_the_same_broker(yard: Yard) -> None:
    """Each client gets the port of the listener it uses."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,INNER://127.0.0.1:0",
        "listener.security.protocol.map": "INNER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    node = await yard.start(settings=settings)
    inner = node._listeners.endpoints[1]
    client = Client(*await asyncio.open_connection(inner.host, inner.port))
    yard.clients.append(client)
    response = await client.metadata()
    assert [item.port for item in response.brokers] == [inner.port]


async def test_failed_disk_takes_its_directory_offline(yard: Yard) -> None:
    """Writes fail with KAFKA_STORAGE_ERROR, and the broker continues with the other directory."""
    files = BreakableFiles()
    settings = {"log.dirs": f"{yard.folder},{yard.folder}-2"}
    client = await yard.client(await yard.start(files=files, settings=settings))
    await client.metadata("t")
    await client.metadata("u")
    assert (await client.produce("t", b"a")).error_code == 0
    files.is_broken = True
    assert (await client.produce("t", b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    files.is_broken = False
    assert (await client.produce("t", b"c")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (await client.produce("u", b"c")).error_code == 0


async def test_partitions_of_a_failed_directory_lose_their_leader(yard: Yard) -> None:
    """The partition has no leader, no election finds one, and a restart with a working disk
    restores it.
    """
    files = BreakableFiles()
    settings = {"log.dirs": f"{yard.folder},{yard.folder}-2"}
    node = await yard.start(files=files, settings=settings)
    client = await yard.client(node)
    epoch = (await client.metadata("t")).topics[0].partitions[0].leader_epoch
    assert (await client.produce("t", b"a")).error_code == 0
    await client.metadata("u")
    files.is_broken = True
    assert (await client.produce("t", b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    files.is_broken = False
    partition = await leaderless(client, "t")
    assert partition.leader_epoch == epoch + 1
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == (
        [1],
        [1],
        [1],
    )
    for kind in ElectionType:
        outcomes = await node.broker.controller.elect_leaders(kind, [("t", 0)])
        assert outcomes[0].error is not None, kind
    other = (await client.metadata("u")).topics[0].partitions[0]
    assert (other.error_code, other.leader_id, other.offline_replicas) == (0, 1, [])
    assert (await client.metadata("new")).topics[0].partitions[0].leader_id == 1
    await node.stop()
    again = await yard.client(await yard.start(settings=settings))
    mended = (await again.metadata("t")).topics[0].partitions[0]
    assert (mended.error_code, mended.leader_id, mended.offline_replicas) == (0, 1, [])
    assert await again.fetch("t") == [b"a"]


async def test_directory_that_fails_while_the_broker_is_down_is_reported(yard: Yard) -> None:
    """Its partitions have no leader from the start, and those in other directories have one."""
    settings = {"log.dirs": f"{yard.folder},{yard.folder}-2"}
    node = await yard.start(settings=settings)
    client = await yard.client(node)
    for name in ("t", "u"):
        await client.metadata(name)
        assert (await client.produce(name, b"a")).error_code == 0
    lost = [name for name in ("t", "u") if (yard.folder.parent / f"data-2/{name}-0").exists()]
    assert len(lost) == 1
    await node.stop()
    files = HalfDeadFiles()
    files.dead = f"{yard.folder}-2"
    again = await yard.client(await yard.start(files=files, settings=settings))
    assert (await leaderless(again, lost[0])).offline_replicas == [1]
    remaining = "u" if lost == ["t"] else "t"
    assert (await again.metadata(remaining)).topics[0].partitions[0].leader_id == 1


async def leaderless(client: Client, topic: str) -> Any:
    """Request metadata until the partition has no leader, and return partition 0."""
    async with asyncio.timeout(20):
        while True:
            partition = (await client.metadata(topic)).topics[0].partitions[0]
            if partition.leader_id == -1:
                assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
                return partition


async def test_a_node_without_a_log_directory_stops(yard: Yard) -> None:
    """Pending requests get their responses, connections are closed, and the failure is kept."""
    files = BreakableFiles()
    node = await yard.start(files=files)
    heard = asyncio.Event()
    node.on_failure = heard.set
    client = await yard.client(node)
    await client.metadata("t")
    files.is_broken = True
    assert (await client.produce("t", b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    async with asyncio.timeout(20):
        await heard.wait()
        assert await client.reader.read() == b""
        await node.stop()
    assert node.failure is not None
    assert node.failure.directory == str(yard.folder)
    assert "No log directory is left: check the disk" in str(node.failure)


async def test_node_that_cannot_write_its_metadata_stops(yard: Yard) -> None:
    """A node that cannot write its metadata reports it and stops, instead of serving only reads."""
    files = BreakableFiles("cluster.journal.")
    folders = {"log.dirs": f"{yard.folder},{yard.folder}-2"}
    node = await yard.start(files=files, settings=folders)
    heard = asyncio.Event()
    node.on_failure = heard.set
    client = await yard.client(node)
    await client.metadata("t")
    assert (await client.produce("t", b"a")).error_code == 0
    files.is_broken = True
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name="new")]), 9)
    async with asyncio.timeout(20):
        await heard.wait()
        await node.stop()
    assert node.failure is not None
    assert node.failure.directory == str(yard.folder)
    assert "coordination tree could not be written" in str(node.failure)
    again = await yard.client(await yard.start(settings=folders))
    assert [topic.name for topic in (await again.metadata()).topics] == ["t"]
    assert await again.fetch("t") == [b"a"]


async def test_metadata_may_have_a_separate_directory(yard: Yard) -> None:
    """With `coordination.dir`, no log directory is more important than another."""
    files = BreakableFiles()
    settings = {
        "log.dirs": f"{yard.folder},{yard.folder}-2",
        "coordination.dir": f"{yard.folder}-3",
    }
    node = await yard.start(files=files, settings=settings)
    client = await yard.client(node)
    for name in ("t", "u"):
        await client.metadata(name)
    assert not list(yard.folder.glob("cluster.*"))
    assert list(yard.folder.parent.glob("data-3/cluster.journal.*"))
    files.is_broken = True
    assert (await client.produce("t", b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    files.is_broken = False
    await leaderless(client, "t")
    assert (await client.metadata("new")).topics[0].partitions[0].leader_id == 1


@pytest.mark.parametrize("change", ["order", "setting"])
async def test_metadata_in_another_directory_is_an_error_with_advice(
    yard: Yard, change: str
) -> None:
    """A second cluster over the logs of the first would destroy both."""
    one, two = str(yard.folder), f"{yard.folder}-2"
    await (await yard.start(settings={"log.dirs": f"{one},{two}"})).stop()
    elsewhere = (
        {"log.dirs": f"{two},{one}"}
        if change == "order"
        else {"log.dirs": f"{one},{two}", "coordination.dir": f"{yard.folder}-3"}
    )
    with pytest.raises(ConfigError, match=rf"is in {one}, .* set coordination\.dir={one}, or move"):
        await yard.start(settings=elsewhere)
    await yard.start(settings={"log.dirs": f"{two},{one}", "coordination.dir": one})


class BreakableFiles(RealFileSystem):
    """Files of the operating system; appends to logs or to other files fail while it is broken."""

    is_broken = False

    def __init__(self, breakable: str = ".log") -> None:
        self._breakable = breakable

    def open(self, path: str, *, create: bool = False) -> RealFile:
        if self._breakable not in path:
            return super().open(path, create=create)
        guarded = GuardedFile(path, open_descriptor(path, create=create))
        guarded.files = self
        return guarded


class HalfDeadFiles(RealFileSystem):
    """Files of the operating system; directories below `dead` cannot be listed."""

    dead = ""

    def list(self, path: str) -> list[str]:
        if path.startswith(self.dead):
            raise OSError(errno.EIO, "dead")
        return super().list(path)


class GuardedFile(RealFile):
    """A log file whose appends fail while its disk is broken."""

    files: BreakableFiles

    def append(self, data: Any) -> None:
        if self.files.is_broken:
            raise OSError(errno.EIO, "broken")
        super().append(data)


async def test_connections_wait_until_the_broker_is_ready(yard: Yard) -> None:
    """An early client is served later, not rejected."""
    node = yard.make(rng=SeededRng(1))
    starting = asyncio.ensure_future(node.start())
    while not node._listeners.endpoints or not node._listeners.endpoints[0].port:
        await asyncio.sleep(0)
    client = await yard.client(node)
    client.send(MetadataRequest(topics=None), 9)
    await starting
    response = await client.receive(MetadataResponse, 9)
    assert [item.node_id for item in response.brokers] == [1]


async def test_deleted_topic_is_removed_completely(yard: Yard) -> None:
    """The topic is removed from image and replicas, and its name can be used again."""
    node = await yard.start()
    client = await yard.client(node)
    await client.metadata("t")
    await client.produce("t", b"old")
    await node.broker.controller.delete_topics(["t"])
    assert node.broker.image.topic("t") is None
    assert node.broker.replicas.partitions() == []
    await client.metadata("t")
    assert await client.fetch("t") == []


async def test_dynamic_options_take_effect(yard: Yard) -> None:
    """A changed topic setting reaches the topic's log."""
    node = await yard.start()
    client = await yard.client(node)
    await client.metadata("t")
    configs = node.broker.configs
    configs._topics["t"] = {"max.message.bytes": "100"}
    configs._topic_snapshots.pop("t", None)
    for on_topic in configs.on_topic:
        on_topic("t", configs.topic("t"))
    response = await client.produce("t", b"x" * 200)
    assert response.error_code == ErrorCode.MESSAGE_TOO_LARGE


class SteppedClock(RealClock):
    """Monotonic and processor time that advance only in steps, independent of the machine's load."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now

    def cpu_seconds(self) -> float:
        return self.now


async def test_pause_of_the_loop_is_reported_with_its_cause(
    yard: Yard, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every node measures the lag, and the log line names the request that arrived at that time."""
    clock = SteppedClock()
    node = await yard.start(clock=clock)
    client = await yard.client(node)
    await client.metadata("t")
    get = node.broker.replicas.get

    def slow(topic: str, partition: int) -> Any:
        clock.now += 0.15
        return get(topic, partition)

    monkeypatch.setattr(node.broker.replicas, "get", slow)
    lag = node.loop_watches[0].lag
    assert await client.fetch("t") == []
    async with asyncio.timeout(60):
        while not lag.pauses_count:
            await asyncio.sleep(0)
    assert (lag.pauses_count, lag.take_longest()) == (1, pytest.approx(0.13))
    (line,) = [record.message for record in caplog.records if "event loop paused" in record.message]
    assert "ms=130 own_cpu_ms=150 during=FETCH of test" in line


async def test_upkeep_of_logs_uses_the_options(yard: Yard) -> None:
    """Intervals, rates and producer expiration come from the options; dynamic ones are read again."""
    settings = {
        "log.initial.task.delay.ms": "11",
        "log.retention.check.interval.ms": "12",
        "log.flush.offset.checkpoint.interval.ms": "13",
        "log.flush.start.offset.checkpoint.interval.ms": "14",
        "producer.id.expiration.check.interval.ms": "15",
        "log.stray.retention.ms": "18",
        "producer.id.expiration.ms": "16",
        "replica.alter.log.dirs.io.max.bytes.per.second": "17",
    }
    node = await yard.start(settings=settings)
    client = await yard.client(node)
    await client.metadata("t")
    replicas = node.broker.replicas
    assert replicas.directories.upkeep.intervals == (11, 12, 13, 14, 15, 18)
    assert replicas.move_bytes_per_second() == 17
    assert replicas.get("t", 0).log.config.producer_id_expiration_ms == 16


async def test_clients_get_absolute_paths_of_directories(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients use the paths in AlterReplicaLogDirs, from any working directory."""
    yard.folder.mkdir()
    monkeypatch.chdir(yard.folder)
    node = await yard.start(settings={"log.dirs": "here,./there/"})
    paths = [item.path for item in node.broker.replicas.directories.directories()]
    assert paths == [f"{yard.folder}/here", f"{yard.folder}/there"]
