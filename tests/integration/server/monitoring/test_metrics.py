"""`/metrics` of a running node, parsed as Prometheus does."""

import asyncio
import errno
import gc
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFile, RealFileSystem
from ottla.server import monitoring
from ottla.server.node import Node
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.records.records import Record, encode_batch
from tests.handlers.logs import batch
from tests.integration.server.test_node import Yard
from tests.unit.server.monitoring.exposition import parse


async def get(node: Node, path: str = "/metrics", method: str = "GET") -> tuple[int, bytes]:
    assert node.monitoring_address is not None
    reader, writer = await asyncio.open_connection(*node.monitoring_address)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    length = re.search(rb"Content-Length: (\d+)", head)
    assert length is not None
    assert method == "HEAD" or int(length.group(1)) == len(body)
    return int(head.split()[1]), body


async def metrics(node: Node) -> Any:
    status, body = await get(node)
    assert status == 200
    samples = parse(body.decode())

    def value(name: str, **labels: object) -> float:
        return samples[name, frozenset((key, str(each)) for key, each in labels.items())]

    return value


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    """Yield a yard with a directory of its own."""
    async with Yard(tmp_path / "data") as created:
        yield created


SETTINGS = {"metrics.listener": "127.0.0.1:0", "num.partitions": "2"}


async def test_traffic_is_counted_for_each_topic_and_for_all(yard: Yard) -> None:
    """Records, bytes in and bytes out have Kafka's metric names."""
    node = await yard.start(settings=SETTINGS)
    client = await yard.client(node)
    await client.metadata("a", "b")
    for topic, value in (("a", b"1"), ("a", b"22"), ("b", b"333")):
        await client.produce(topic, value)
    read = await client.fetch("a")
    assert len(read) == 2
    value = await metrics(node)
    prefix = "kafka_server_brokertopicmetrics_"
    assert value(f"{prefix}messagesin_total", topic="a") == 2
    assert value(f"{prefix}messagesin_total") == 3
    size = node.broker.replicas.get("a", 0).log.size_bytes
    assert value(f"{prefix}bytesin_total", topic="a") == size
    assert value(f"{prefix}bytesout_total", topic="a") == size
    assert value(f"{prefix}bytesout_total", topic="b") == 0
    assert value(f"{prefix}totalproducerequests_total", topic="b") == 1


async def test_bytes_out_count_only_sent_records(yard: Yard) -> None:
    """A fetch that waits for more reads the same bytes again, but counts them once."""
    node = await yard.start(settings=SETTINGS)
    client = await yard.client(node)
    await client.metadata("a")
    await client.produce("a", b"1")
    partition = FetchPartition(fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="a", partitions=[partition])]
    client.send(FetchRequest(max_wait_ms=30, min_bytes=10_000, topics=topics), 12)
    response = await client.receive(FetchResponse, 12)
    size = len(response.responses[0].partitions[0].records)
    value = await metrics(node)
    assert value("kafka_server_brokertopicmetrics_bytesout_total", topic="a") == size > 0
    assert value("kafka_server_brokertopicmetrics_totalfetchrequests_total", topic="a") == 2


async def test_totals_keep_the_counts_of_a_deleted_topic(yard: Yard) -> None:
    """A counter of all topics never decreases."""
    node = await yard.start(settings=SETTINGS)
    client = await yard.client(node)
    await client.metadata("a")
    await client.produce("a", b"1")
    node.broker.replicas.stop_replicas(10**6, [("a", 0), ("a", 1)], delete=True)
    value = await metrics(node)
    assert value("kafka_server_brokertopicmetrics_messagesin_total") == 1
    with pytest.raises(KeyError):
        value("kafka_server_brokertopicmetrics_messagesin_total", topic="a")


async def test_requests_are_counted_and_timed(yard: Yard) -> None:
    """Requests are labelled by API and version, and errors by their Kafka names."""
    node = await yard.start(settings=SETTINGS)
    client = await yard.client(node)
    await client.metadata("a")
    for _ in range(40):
        await client.produce("a", b"1")
    await client.produce("missing", b"1")
    value = await metrics(node)
    prefix = "kafka_network_requestmetrics_"
    assert value(f"{prefix}requests_total", request="Produce", version=9) == 41
    assert value(f"{prefix}requests_total", request="Metadata", version=9) == 1
    assert (
        value(f"{prefix}errors_total", request="Produce", error="UNKNOWN_TOPIC_OR_PARTITION") == 1
    )
    assert value("kafka_server_brokertopicmetrics_failedproducerequests_total") == 1
    assert value(f"{prefix}totaltimems_count", request="Produce") == 48
    middle, late = (
        value(f"{prefix}totaltimems", request="Produce", quantile=share) for share in (0.5, 0.99)
    )
    assert 0 < middle <= late < 5000


async def test_partitions_are_reported_like_kafka_and_kafka_exporter(yard: Yard) -> None:
    """Dashboards for Kafka and for kafka_exporter both show the partitions."""
    node = await yard.start(settings=SETTINGS)
    client = await yard.client(node)
    await client.metadata("a")
    await client.produce("a", b"1")
    value = await metrics(node)
    labels = {"topic": "a", "partition": 0}
    log = node.broker.replicas.get("a", 0).log
    assert value("kafka_log_log_size", **labels) == log.size_bytes > 0
    assert value("kafka_log_log_logendoffset", **labels) == 1
    assert value("kafka_log_log_numlogsegments", **labels) == 1
    assert value("kafka_topic_partition_current_offset", **labels) == 1
    assert value("kafka_topic_partition_oldest_offset", **labels) == 0
    assert value("kafka_topic_partition_leader", **labels) == 1
    assert value("kafka_topic_partition_leader_is_preferred", **labels) == 1
    assert value("kafka_topic_partition_under_replicated_partition", **labels) == 0
    assert value("kafka_cluster_partition_atminisr", **labels) == 1
    assert value("kafka_topic_partitions", topic="a") == 2
    assert value("kafka_brokers") == 1
    assert value("kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert value("kafka_controller_kafkacontroller_globalpartitioncount") == 2
    assert value("kafka_server_replicamanager_leadercount") == 2
    assert value("kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert value("kafka_server_kafkaserver_brokerstate") == 3


async def commit(node: Node, *topics: str) -> None:
    """Commit offset 3 of each topic's first partition in a group."""
    await node.broker.controller.ensure_topic("__consumer_offsets", 1, {})
    request = OffsetCommitRequest(
        group_id="g", topics=[
            OffsetCommitRequestTopic(name=name, partitions=[
                OffsetCommitRequestPartition(partition_index=0, committed_offset=3)])
            for name in topics
        ],
    )  # fmt: skip
    reply = node.broker.groups.commit_offsets(request, api_version=8)
    if isinstance(reply, asyncio.Future):
        await reply


async def test_groups_have_their_lag(yard: Yard) -> None:
    """The lag is the log end minus the committed offset, and -1 for a deleted partition."""
    node = await yard.start(settings=SETTINGS | {"offsets.topic.num.partitions": "1"})
    client = await yard.client(node)
    await client.metadata("a")
    for number in range(5):
        await client.produce("a", b"%d" % number)
    await commit(node, "a", "gone")
    value = await metrics(node)
    labels = {"consumergroup": "g", "topic": "a"}
    assert value("kafka_consumergroup_current_offset", **labels, partition=0) == 3
    assert value("kafka_consumergroup_lag", **labels, partition=0) == 2
    assert value("kafka_consumergroup_lag", consumergroup="g", topic="gone", partition=0) == -1
    assert value("kafka_consumergroup_lag_sum", **labels) == 2
    assert value("kafka_consumergroup_members", consumergroup="g") == 0
    assert value("kafka_coordinator_group_groupmetadatamanager_numgroups") == 1
    assert value("kafka_coordinator_group_groupmetadatamanager_numgroupsempty") == 1
    for topic in ("__consumer_offsets", "__transaction_state"):
        assert value("ottla_coordinator_skipped_records_total", topic=topic) == 0


async def test_delayed_requests_are_counted(yard: Yard) -> None:
    """A delayed fetch adds one to its purgatory until it completes."""
    node = await yard.start(settings=SETTINGS)
    client = await yard.client(node)
    await client.metadata("a")
    client.begin_fetch("a", 0, 60_000)
    waits = node.broker.replicas.delayed.waiting_counts
    async with asyncio.timeout(5):
        while not waits["Fetch"]:
            await asyncio.sleep(0)
    value = await metrics(node)
    name = "kafka_server_delayedoperationpurgatory_purgatorysize"
    assert value(name, delayedOperation="Fetch") == 1
    assert (
        value(
            "kafka_server_socket_server_metrics_connection_count",
            listener="PLAINTEXT",
            networkProcessor=0,
        )
        == 1
    )
    other = await yard.client(node)
    await other.produce("a", b"1")
    async with asyncio.timeout(5):
        while waits["Fetch"]:
            await asyncio.sleep(0)
    value = await metrics(node)
    assert value(name, delayedOperation="Fetch") == 0
    prefix = "kafka_server_socket_server_metrics_connection_"
    assert value(f"{prefix}creation_total", listener="PLAINTEXT", networkProcessor=0) == 2


async def test_descriptors_for_connections_are_reported(yard: Yard) -> None:
    """The connection limit that leaves descriptors for files is reported, with the closed
    connections.
    """
    node = await yard.start(settings=SETTINGS)
    value = await metrics(node)
    assert 0 < value("ottla_connections_max") < value("process_max_fds")
    assert value("ottla_connections_closed_for_descriptors_total") == 0
    assert value("ottla_connections_refused_for_descriptors_total") == 0


async def test_process_and_event_loop_are_reported(yard: Yard) -> None:
    """Process metrics have the names of the Python client of Prometheus."""
    node = await yard.start(settings=SETTINGS)
    value = await metrics(node)
    assert value("process_resident_memory_bytes") > 10_000_000
    assert value("process_cpu_seconds_total") > 0
    assert 5 < value("process_open_fds") < value("process_max_fds")
    assert value("python_gc_collections_total", generation=0) > 0
    lag = node.loop_watches[0].lag
    assert value("ottla_event_loop_lag_seconds_bucket", le="+Inf") <= lag.count
    assert value("ottla_log_directory_usable_bytes", path=str(yard.folder)) > 0


async def test_compaction_is_reported(yard: Yard) -> None:
    """Cleanings and their bytes before and after have Kafka's names if Kafka has them."""
    settings = {"log.cleaner.backoff.ms": "10", "log.segment.bytes": "1048576"}
    node = await yard.start(settings=SETTINGS | settings)
    cleaner = node.sources.cleaner
    assert cleaner is not None
    await node.broker.controller.ensure_topic("a", 1, {"cleanup.policy": "compact"})
    partition = node.broker.replicas.get("a", 0)
    for number in range(20):
        records = encode_batch([Record(b"key", b"%d" % number)], timestamp=number + 1)
        partition.append_as_leader(records, acks=1)
    partition.log.rolling.roll()
    partition.log.durability.flush()
    partition.append_as_leader(encode_batch([Record(b"k", b"v")], timestamp=1), acks=1)
    async with asyncio.timeout(20):
        while not cleaner.passes_count:
            await asyncio.sleep(0)
    value = await metrics(node)
    assert value("ottla_log_cleaner_rounds_total") >= 1
    read, remaining = (value(f"ottla_log_cleaner_{name}_bytes_total") for name in ("read", "kept"))
    assert 0 < remaining < read
    share = value("kafka_log_logcleaner_cleaner_recopy_percent")
    assert share == pytest.approx(100 * remaining / read, rel=0.5)
    assert value("kafka_log_logcleanermanager_uncleanable_partitions_count") == 0


# `test_cluster_metrics.py` has those that need a second broker.
# The metrics in Strimzi's and Confluent's dashboards and alert rules for brokers, and
# kafka_exporter's.
DASHBOARDS = """
kafka_controller_kafkacontroller_{activecontrollercount,offlinepartitionscount}
kafka_controller_kafkacontroller_{preferredreplicaimbalancecount,globaltopiccount}
kafka_controller_kafkacontroller_globalpartitioncount
kafka_controller_controllerstats_uncleanleaderelections_total
kafka_server_replicamanager_{underreplicatedpartitions,underminisrpartitioncount}
kafka_server_replicamanager_{leadercount,partitioncount,offlinereplicacount}
kafka_server_replicamanager_{isrshrinks_total,isrexpands_total,reassigningpartitions}
kafka_cluster_partition_{underminisr,atminisr,replicascount}
kafka_log_logmanager_offlinelogdirectorycount
kafka_server_kafkaserver_{brokerstate,linux_disk_read_bytes,linux_disk_write_bytes}
kafka_server_brokertopicmetrics_{messagesin,bytesin,bytesout,bytesrejected}_total
kafka_server_brokertopicmetrics_{totalproducerequests,totalfetchrequests}_total
kafka_server_brokertopicmetrics_{failedproducerequests,failedfetchrequests}_total
kafka_server_brokertopicmetrics_{replicationbytesin,replicationbytesout}_total
kafka_network_requestmetrics_{totaltimems,localtimems,remotetimems,requestqueuetimems}
kafka_network_requestmetrics_{responsequeuetimems,responsesendtimems,requests_total,errors_total}
kafka_network_requestchannel_requestqueuesize
kafka_network_socketserver_networkprocessoravgidle_percent
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent
kafka_server_socket_server_metrics_connection_count
kafka_server_fetchsessioncache_{numincrementalfetchsessions,numincrementalfetchpartitionscached}
kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total
kafka_server_delayedoperationpurgatory_purgatorysize
kafka_server_replicafetchermanager_maxlag
kafka_server_sessionexpirelistener_{zookeeperdisconnects,zookeeperexpires}_total
kafka_log_log_{size,logstartoffset,logendoffset,numlogsegments}
kafka_log_logflushstats_logflushrateandtimems
kafka_coordinator_group_groupmetadatamanager_{numgroups,numgroupsstable,numgroupsempty}
kafka_consumergroup_{current_offset,current_offset_sum,lag,lag_sum,members}
kafka_topic_partition_{current_offset,oldest_offset,in_sync_replica,leader,leader_is_preferred}
kafka_topic_partition_{replicas,under_replicated_partition}
kafka_{brokers,broker_info,topic_partitions}
process_open_fds
jvm_{memory_used_bytes,gc_collection_seconds_count,threads_current}
"""


# Served for each partition that a broker follows: tests/unit/replication/traffic has a cluster.
OF_FOLLOWERS = {"kafka_server_fetcherlagmetrics_consumerlag"}


def dashboard_names() -> set[str]:
    """Yield the names one by one."""
    names = set()
    for line in DASHBOARDS.split():
        head, _, rest = line.partition("{")
        middle, _, tail = rest.partition("}")
        names |= {f"{head}{part}{tail}" for part in middle.split(",")}
    return names


async def test_names_of_dashboards_are_served_or_documented_as_missing(yard: Yard) -> None:
    """Every metric is either served or listed as missing in the package, as docs/gaps.md repeats."""
    node = await yard.start(settings=SETTINGS | {"offsets.topic.num.partitions": "1"})
    client = await yard.client(node)
    await client.metadata("a")
    await client.produce("a", b"1")
    await client.produce("missing", b"1")
    await commit(node, "a")
    _, body = await get(node)
    served = {name for name, _ in parse(body.decode())}
    missing = set(re.findall(r"`([a-z_]+)`", (monitoring.__doc__ or "").partition("Not done:")[2]))
    assert dashboard_names() - served - OF_FOLLOWERS == missing & dashboard_names()
    assert not missing & served


async def test_metrics_of_replication_are_zero_on_one_broker(yard: Yard) -> None:
    """Alerts on these names find the value 0."""
    value = await metrics(await yard.start(settings=SETTINGS))
    for name in ("isrshrinks_total", "isrexpands_total", "reassigningpartitions"):
        assert value(f"kafka_server_replicamanager_{name}") == 0
    for reason in ("replication", "reassignment"):
        for direction in ("in", "out"):
            name = f"kafka_server_brokertopicmetrics_{reason}bytes{direction}_total"
            assert value(name) == 0
    for role in ("leader", "follower"):
        assert value(f"kafka_server_{role}replication_byte_rate") == 0
    assert value("kafka_server_replicafetchermanager_maxlag", clientId="Replica") == 0
    assert value("kafka_controller_controllerstats_uncleanleaderelections_total") == 0


async def test_rejected_bytes_are_counted(yard: Yard) -> None:
    """Rejected bytes count for the topic and in total, but not as appended."""
    node = await yard.start(settings=SETTINGS | {"message.max.bytes": "1000"})
    client = await yard.client(node)
    await client.metadata("a")
    large = b"x" * 2000
    for value_bytes in (large, b"1", large):
        await client.produce("a", value_bytes)
    value = await metrics(node)
    prefix = "kafka_server_brokertopicmetrics_bytesrejected_total"
    assert value(prefix, topic="a") == value(prefix) == 2 * len(batch(large))
    assert value("kafka_server_brokertopicmetrics_messagesin_total") == 1


async def test_fetch_sessions_are_counted(yard: Yard) -> None:
    """Fetch sessions are counted with their partitions and evictions."""
    settings = {"max.incremental.fetch.session.cache.slots": "1", "num.partitions": "1"}
    node = await yard.start(settings=SETTINGS | settings)
    client = await yard.client(node)
    await client.metadata("a", "b")
    topics = [FetchTopic(topic=name, partitions=[FetchPartition()]) for name in ("a", "b")]
    for _ in range(2):
        client.send(FetchRequest(topics=topics, session_epoch=0), 12)
        await client.receive(FetchResponse, 12)
        node.broker.fetch_sessions._clock = LaterClock()
    value = await metrics(node)
    prefix = "kafka_server_fetchsessioncache_"
    assert value(f"{prefix}numincrementalfetchsessions") == 1
    assert value(f"{prefix}numincrementalfetchpartitionscached") == 2
    assert value(f"{prefix}incrementalfetchsessionevictions_total") == 1


class LaterClock(RealClock):
    """A clock that is an hour ahead."""

    def monotonic(self) -> float:
        return super().monotonic() + 3600


async def test_long_scrape_does_not_block_the_loop(yard: Yard) -> None:
    """Other requests are served in between, and concurrent scrapes get the same text."""
    node = await yard.start(settings=SETTINGS | {"num.partitions": "200"})
    client = await yard.client(node)
    await client.metadata("t")
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    assert node._monitoring is not None
    scraper = node._monitoring.scraper
    running = asyncio.ensure_future(others())
    one, two = await asyncio.gather(scraper.text(), scraper.text())
    running.cancel()
    assert one is two
    assert sum(map(len, one)) > 100_000
    assert turns > 3


class _BrokenDisk(RealFileSystem):
    """Two devices; the one below `b` fails when the test says so."""

    def __init__(self) -> None:
        self.is_broken = False

    def open(self, path: str, *, create: bool = False) -> RealFile:
        if self.is_broken and create and "/b/" in path:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().open(path, create=create)


async def test_healthy_broker_returns_200(yard: Yard) -> None:
    """Load balancers get status 200 and the state in JSON."""
    node = await yard.start(settings=SETTINGS)
    status, body = await get(node, "/healthz")
    assert status == 200
    assert b'"status": "ok"' in body
    assert (await get(node, "/healthz", "HEAD")) == (200, b"")


async def test_a_broker_with_an_offline_directory_is_degraded(yard: Yard) -> None:
    """The status is 503 with the directory and the reason, and metrics are still served."""
    files = _BrokenDisk()
    folders = f"{yard.folder}/a,{yard.folder}/b"
    node = await yard.start(files=files, settings=SETTINGS | {"log.dirs": folders})
    client = await yard.client(node)
    await client.metadata("t")
    files.is_broken = True
    await client.metadata("u")
    status, body = await get(node, "/healthz")
    assert status == 503
    assert b'"status": "degraded"' in body
    assert b"Input/output error" in body
    value = await metrics(node)
    assert value("kafka_log_logmanager_offlinelogdirectorycount") == 1


async def test_starting_broker_is_reported(yard: Yard) -> None:
    """The port opens before the logs are loaded, and serves the metrics that exist by then."""
    node = yard.make(settings=SETTINGS)
    await node._open_monitoring()
    status, body = await get(node, "/healthz")
    assert (status, b'"status": "starting"' in body) == (503, True)
    value = await metrics(node)
    assert value("kafka_server_kafkaserver_brokerstate") == 1
    assert value("process_open_fds") > 5


async def test_stopping_broker_is_reported(yard: Yard) -> None:
    """A stopping broker closes the port last."""
    node = await yard.start(settings=SETTINGS)
    seen: list[tuple[int, bytes]] = []

    async def look() -> None:
        seen.append(await get(node, "/healthz"))
        seen.append(await get(node))

    node._undo.push_async_callback(look)
    await node.stop()
    assert seen[0][0] == 503
    assert b'"status": "stopping"' in seen[0][1]
    assert b"brokerstate 7" in seen[1][1]


async def test_used_port_is_an_error(yard: Yard) -> None:
    """The broker does not start without its configured metrics port."""
    node = await yard.start(settings=SETTINGS)
    assert node.monitoring_address is not None
    port = node.monitoring_address[1]
    other = yard.make(settings={"metrics.listener": f"127.0.0.1:{port}"})
    with pytest.raises(ConfigError, match=r"for metrics: .*--metrics-port"):
        await other.start()


def test_invalid_address_is_rejected(yard: Yard) -> None:
    """The error shows the expected form of the address."""
    with pytest.raises(ConfigError, match=r"metrics\.listener: it must look like host:port"):
        Node({"metrics.listener": "9308"})


async def test_dialects_are_chosen_by_an_option(yard: Yard) -> None:
    """The names of the chosen dialects are served, and no others of the beans."""
    settings = SETTINGS | {"metrics.dialects": "strimzi-reporter,confluent"}
    node = await yard.start(settings=settings)
    client = await yard.client(node)
    await client.metadata("a")
    await client.produce("a", b"1")
    value = await metrics(node)
    prefix = "kafka_server_brokertopicmetrics_messagesin"
    assert value(f"{prefix}persec_total", topic="a") == 1
    assert value(f"{prefix}persec", topic="a") == 1
    for absent in (f"{prefix}_total", "kafka_topic_partition_current_offset"):
        with pytest.raises(KeyError):
            value(absent, topic="a")
    assert value("kafka_server_replicamanager_leadercount") == 2
    sockets = "kafka_server_socketservermetrics_connection_count"
    assert value(sockets, listener="PLAINTEXT", network_processor=0) == 1


def test_unknown_dialect_is_rejected() -> None:
    """The error names the dialects."""
    with pytest.raises(ConfigError, match="'jmx' is not a dialect: choose from jmx-exporter, "):
        Node({"metrics.dialects": "jmx,confluent"})


async def test_names_of_a_jvm_are_served_on_request(yard: Yard) -> None:
    """Memory and threads are measured for the process, collections are counted from the start on."""
    node = await yard.start(settings=SETTINGS | {"metrics.jvm.names": "true"})
    before = await metrics(node)
    gc.collect()
    value = await metrics(node)
    assert value("jvm_memory_used_bytes", area="heap") > 10_000_000
    assert value("jvm_threads_current") >= 1
    name = "jvm_gc_collection_seconds"
    count = value(f"{name}_count", gc="generation 2")
    assert count > before(f"{name}_count", gc="generation 2")
    assert value(f"{name}_sum", gc="generation 2") > 0
    callbacks = len(gc.callbacks)
    await node.stop()
    assert len(gc.callbacks) == callbacks - 1
