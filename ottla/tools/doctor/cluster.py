"""Checks of a cluster that responds: its advertised addresses, and whether it is healthy.

The usual problem is an advertised address that is right for the broker and wrong for the client: in
a container, behind a forwarded port, on another machine.
"""

import ipaddress
import time
from collections.abc import Iterator

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import topics
from ottla.client.admin.answers import check_leader
from ottla.client.admin.cluster import Broker, ClusterDescription, describe_cluster
from ottla.client.bootstrap import Address
from ottla.client.brokers import Brokers, LeaderError
from ottla.client.connection import OnRequest
from ottla.client.errors import ClientError
from ottla.client.security.options import Security
from ottla.operations import topics as operations
from ottla.tools.doctor import port
from ottla.tools.doctor.findings import Finding, State, fail, ok, warn
from ottla.tools.doctor.machine import DISK_WARN_BYTES, ROOM
from ottla.tools.output import count_text, size_text
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.list_offsets import ListOffsetsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch

# Clocks that are further apart make timestamps, retention and log reading confusing.
SKEW_WARN_S = 2.0
SKEW_FAIL_S = 60.0
_NEEDED = (
    MetadataRequest,
    ProduceRequest,
    FetchRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
    CreateTopicsRequest,
)


def examine(
    bootstrap: Address,
    security: Security | None = None,
    *,
    may_write: bool,
    on_request: OnRequest | None = None,
) -> Iterator[Finding]:
    """Yield the findings about a broker that responds on an address."""
    with Brokers(str(bootstrap), timeout_s=10.0, security=security) as brokers:
        brokers.on_request = on_request
        try:
            yield _versions(brokers)
            described = describe_cluster(brokers)
            yield ok(
                "cluster",
                f"id {described.cluster_id}, {count_text(len(described.brokers), 'broker')}",
            )
            yield _controller(described)
            for broker in described.brokers:
                yield _advertised(brokers, bootstrap, broker, described)
                yield _directories(brokers, broker.node_id)
            yield _partitions(brokers)
            yield _time(brokers, may_write=may_write)
        except OttlaError as error:
            yield fail("cluster", str(error), _remedy(error))


def _remedy(error: OttlaError) -> str:
    if isinstance(error, ApiError) and error.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
        return "Check the user and the password in the file of --command-config or of the profile."
    return "Look for the cause in the broker's log. A listener with TLS or SASL needs --command-config."


def _versions(brokers: Brokers) -> Finding:
    connection = brokers.any_connection()
    missing = []
    for request in _NEEDED:
        try:
            connection.version_of(request)
        except OttlaError as error:
            missing.append(str(error))
    if missing:
        return fail(
            "versions", " ".join(missing),
            "Use a broker of Kafka 2.1 or newer, or tools of the broker's version.",
        )  # fmt: skip
    return ok("versions", "broker and tools share versions of every request they need")


def _controller(described: ClusterDescription) -> Finding:
    if described.controller_id >= 0:
        return ok("controller", f"broker {described.controller_id}")
    return fail(
        "controller",
        "no controller: topics cannot be created, leaders cannot be elected",
        "Look at the brokers' logs; each must reach the coordination service.",
    )


def _advertised(
    brokers: Brokers, bootstrap: Address, broker: Broker, described: ClusterDescription
) -> Finding:
    """Connect to the address that the broker advertises, as clients do."""
    security = brokers.security
    about = f"advertised address of broker {broker.node_id}"
    advertised = Address(broker.host, broker.port)
    remedy = (
        f"Start the broker with --option advertised.listeners={_protocol(security)}://"
        f"{bootstrap.host}:{bootstrap.port}, an address that clients can reach; or connect from a machine where {advertised} is right."
    )
    if advertised.host in ("0.0.0.0", "::", ""):  # noqa: S104 - compared with
        return fail(about, f"{advertised} is not an address that clients can connect to", remedy)
    resolved = port.resolve(advertised, about)
    if resolved.finding is not None:
        return resolved.finding._replace(
            found=f"the broker advertises {advertised}, and {resolved.finding.found}", remedy=remedy
        )
    seeds = port.resolve(bootstrap, about).addresses
    if _is_loopback(resolved.addresses) and not _is_loopback(seeds):
        return fail(
            about,
            f"the broker advertises {advertised}, a loopback address, but you reached the cluster at "
            f"{bootstrap}: other clients would connect to their own machine",
            remedy,
        )
    if advertised == bootstrap:
        return ok(about, f"{advertised}, the address that you used")
    finding = port.examine(advertised, about, security)
    if finding.state is State.FAIL:
        return finding._replace(
            found=f"the broker advertises {advertised}, but {finding.found}", remedy=remedy
        )
    with Brokers(str(advertised), timeout_s=5.0, security=security) as other:
        other.on_request = brokers.on_request
        cluster_id = describe_cluster(other).cluster_id
    if cluster_id != described.cluster_id:
        return fail(
            about,
            f"the broker advertises {advertised}, but another cluster responds there ({cluster_id})",
            remedy,
        )
    return ok(about, f"{advertised} can be reached from here")


def _protocol(security: Security | None) -> str:
    """Return the name of a security protocol, as in the option listeners."""
    if security is None:
        return "PLAINTEXT"
    prefix = "" if security.credentials is None else "SASL_"
    return f"{prefix}{'PLAINTEXT' if security.tls is None else 'SSL'}"


def _is_loopback(addresses: tuple[str, ...]) -> bool:
    return bool(addresses) and all(
        ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses
    )


def _directories(brokers: Brokers, node_id: int) -> Finding:
    """Request a broker's log directories, which may be on another machine."""
    about = f"log directories of broker {node_id}"
    try:
        response = brokers.ask_node(
            node_id, DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse
        )
    except ClientError as error:
        return warn(about, f"not known: {error}", "Fix its advertised address first.")
    offline = [directory.log_dir for directory in response.results if directory.error_code]
    if offline:
        return fail(
            about,
            f"{len(offline)} of {len(response.results)} offline: {', '.join(offline)}",
            "Look at the broker's log for the cause, repair the disk, and restart the broker; its "
            "partitions there are unavailable until then.",
        )
    # -1 if the broker is too old to report sizes.
    narrow = [
        directory for directory in response.results if 0 <= directory.usable_bytes < DISK_WARN_BYTES
    ]
    if narrow:
        low = ", ".join(
            f"{directory.log_dir} ({size_text(directory.usable_bytes)})" for directory in narrow
        )
        return warn(about, f"low on free space: {low}", ROOM)
    return ok(about, f"{len(response.results)} online, with enough free space")


def _partitions(brokers: Brokers) -> Finding:
    partitions = [
        (f"{topic.name}-{row.partition}", row)
        for topic in topics.list_topics(brokers)
        for row in topic.partitions
    ]
    leaderless = [name for name, row in partitions if row.leader < 0]
    behind = [name for name, row in partitions if len(row.isr) < len(row.replicas)]
    if leaderless:
        return fail(
            "partitions",
            f"{len(leaderless)} of {len(partitions)} have no leader: {_some(leaderless)}",
            "Restart the brokers or restore the log directories that hold them; the log names those that failed.",
        )
    if behind:
        return warn(
            "partitions",
            f"{len(behind)} of {len(partitions)} are under-replicated: {_some(behind)}",
            "Restart the brokers that hold the missing replicas.",
        )
    return ok("partitions", f"{len(partitions)}, each with a leader and all replicas in sync")


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _time(brokers: Brokers, *, may_write: bool) -> Finding:
    """Compare clocks by a record that the broker stamps, in a topic created for this check."""
    if not may_write:
        return ok("time", "not compared: use --write, which creates a temporary topic")
    name = f"ottla-doctor-{time.time_ns()}"
    created = operations.create(
        brokers, name, partitions=1, config={"message.timestamp.type": "LogAppendTime"}
    )
    try:
        before = time.time()
        stamped_ms = _stamp(brokers, name)
        after = time.time()
    finally:
        operations.delete(brokers, created.resource)
    # A difference smaller than the duration of the request cannot be detected.
    theirs = stamped_ms / 1000
    skew = theirs - after if theirs > after else min(theirs - before, 0.0)
    size = f"{abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    remedy = "Set both clocks with NTP (timedatectl set-ntp true)."
    if abs(skew) >= SKEW_FAIL_S:
        return fail("time", f"the broker's clock is {size}", remedy)
    if abs(skew) >= SKEW_WARN_S:
        return warn("time", f"the broker's clock is {size}", remedy)
    return ok("time", "the broker's clock and this machine's agree")


def _stamp(brokers: Brokers, topic: str) -> int:
    """Write one record that the broker stamps, and return the timestamp (ms)."""
    batch = bytes(encode_batch([Record(None, b"what time is it?")], timestamp=_now_ms()))
    request = ProduceRequest(
        acks=1,
        timeout_ms=5000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=batch)]
            )
        ],
    )

    def attempt() -> int:
        leader = _leader_of_new(brokers, topic)
        # From version 13 on, topics have ids instead of names.
        response = brokers.ask_node(leader, request, ProduceResponse, max_version=12)
        (stored,) = response.responses[0].partition_responses
        check_leader(stored.error_code, stored.error_message, subject=f"{topic}-0")
        return int(stored.log_append_time_ms)

    return brokers.retry(attempt)


def _leader_of_new(brokers: Brokers, topic: str) -> int:
    """Return the leader of a topic that was just created; LeaderError if it is not known yet."""
    try:
        return brokers.leaders([(topic, 0)])[topic, 0]
    except ApiError as error:
        # The controller has created the topic: the broker learns of it a moment later.
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise LeaderError(error.code, str(error)) from error
        raise


def _now_ms() -> int:
    return int(time.time() * 1000)
