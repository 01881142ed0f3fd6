"""The active controller of a cluster and its epoch.

In KRaft they are the leader of the quorum: DescribeQuorum (KIP-595), which Ottla's brokers do not
serve.
"""

import logging
import re
from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, OttlaError
from ottla.client.admin.answers import check
from ottla.client.errors import Unsupported
from ottla.console.model.zookeeper import has_tree, read_znode
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.http import get_lines
from ottla.operations.survey.metadata import Metadata
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)

_log = logging.getLogger(__name__)

_LOG = "__cluster_metadata"
# How long the epoch stays unknown before it is read again.
_EPOCH_RETRY_S = 60.0
_EPOCH_NODE = "/controller_epoch"
_EPOCH_METRIC = re.compile(rb"ottla_controller_epoch (\d+)")
_TTL_S = 1.0
_STALE_S = 9.0


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller; -1 while there is none, or if a KRaft cluster refuses to report it.

    In KRaft it may be a node that is not a broker. `epoch` is None if the cluster does not report
    it.
    """

    node_id: int
    epoch: int | None


def read_controller_id(connection: ClusterConnection, metadata: Metadata) -> int:
    """Return the node id of the active controller, some seconds old at most; see `Controller`."""

    def load() -> int:
        quorum = _read_quorum_leader(connection)
        return metadata.controller_id if quorum is None else quorum.node_id

    return connection.cached("controller", _TTL_S, load, stale_s=_STALE_S)


class ControllerReader:
    """Reads the controller of one cluster again and again, its epoch only when it changes."""

    def __init__(self, connection: ClusterConnection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._last = Controller(-1, None)
        self._epoch_due = 0.0

    def read(self, metadata: Metadata) -> Controller:
        """Return the controller, given the current metadata."""
        quorum = _read_quorum_leader(self._connection)
        if quorum is not None:
            return quorum
        now, last = self._clock.monotonic(), self._last
        is_same = last.node_id == metadata.controller_id
        if not is_same or (last.epoch is None and now >= self._epoch_due):
            epoch = read_controller_epoch(self._connection, metadata.controller_id)
            self._last = Controller(metadata.controller_id, epoch)
            self._epoch_due = now + _EPOCH_RETRY_S
        return self._last


def read_controller_epoch(connection: ClusterConnection, node: int) -> int | None:
    """Return the epoch of a controller, from ZooKeeper or the broker's HTTP port; None if neither
    reports it.
    """
    for read in (_epoch_in_zookeeper, _epoch_in_metrics):
        try:
            epoch = read(connection, node)
        except (OttlaError, OSError, ValueError) as error:
            _log.debug("the controller epoch of %s is unknown: %s", connection.name, error)
            continue
        if epoch is not None:
            return epoch
    return None


def _epoch_in_zookeeper(connection: ClusterConnection, node: int) -> int | None:
    if not has_tree(connection):
        return None
    return int(read_znode(connection, _EPOCH_NODE).text)


def _epoch_in_metrics(connection: ClusterConnection, node: int) -> int | None:
    url = connection.settings.http_urls.get(node)
    if url is None:
        return None
    for line in get_lines(url, "/metrics", connection.timeout_s):
        match = _EPOCH_METRIC.match(line)
        if match is not None:
            return int(match[1])
    return None


def _read_quorum_leader(connection: ClusterConnection) -> Controller | None:
    """Return the leader of the quorum; None if the cluster is not KRaft.

    KRaft's metadata names any broker as the controller, because brokers forward its requests: it is
    no substitute if the quorum is not reported.
    """
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=_LOG, partitions=[partition])
    request = DescribeQuorumRequest(topics=[topic])
    try:
        with connection.brokers() as brokers:
            response = brokers.ask(request, DescribeQuorumResponse)
            check(response.error_code, None)
            row = response.topics[0].partitions[0]
            check(row.error_code, None)
    except Unsupported:
        return None
    except (ApiError, IndexError) as error:
        _log.debug("the quorum of %s is unknown: %s", connection.name, error)
        return Controller(-1, None)
    return Controller(row.leader_id, row.leader_epoch)
