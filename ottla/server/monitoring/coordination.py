"""The broker's session with the coordination tree, and the tree itself if this process holds it.

The tree has the names of a ZooKeeper server, by which Strimzi's and Confluent's rules know one.
"""

from collections.abc import Iterator

from ottla.cluster.zk.embedded import TreeSize
from ottla.cluster.zk.measured import SessionProbe
from ottla.cluster.zk.port import SessionState
from ottla.metrics.beans import NONE, Beans, Measurement, distribution
from ottla.metrics.exposition import Family, gauge

_client = Beans("kafka.server", "ZooKeeperClientMetrics")
_listener = Beans("kafka.server", "SessionExpireListener")

_LATENCY = _client.timer("ZooKeeperRequestLatencyMs", "Milliseconds of operations on the tree.")
_STATE = _listener.gauge("SessionState", "State of the session with the tree.")
_CONNECTS = _listener.meter("ZooKeeperSyncConnectsPerSec", "Connections of the session.")
_DISCONNECTS = _listener.meter("ZooKeeperDisconnectsPerSec", "Interruptions of the session.")
_EXPIRES = _listener.meter("ZooKeeperExpiresPerSec", "Sessions that were lost.")
_AUTH_FAILURES = _listener.meter("ZooKeeperAuthFailuresPerSec", "0: there is no authentication.")

# As ZooKeeper's client names the states.
_STATES = {
    SessionState.CONNECTED: "CONNECTED",
    SessionState.SUSPENDED: "CONNECTING",
    SessionState.LOST: "CLOSED",
}


def session(probe: SessionProbe, now: float) -> Iterator[Measurement]:
    """Yield the figures of the broker's sessions; `now` is a time of the monotonic clock (s)."""
    yield _LATENCY.of([(NONE, distribution(probe.latency, now))])
    yield _STATE.of(_STATES[probe.state])
    yield _CONNECTS.of(probe.connected_count)
    yield _DISCONNECTS.of(probe.suspended_count)
    yield _EXPIRES.of(probe.lost_count)
    yield _AUTH_FAILURES.of(0)


def tree(size: TreeSize | None) -> list[Family]:
    """Return the size of the tree; nothing if another process holds it."""
    if size is None:
        return []
    prefix = "zookeeper_inmemorydatatree_"
    return [
        gauge(f"{prefix}nodecount", "Nodes of the tree.", size.nodes),
        gauge(f"{prefix}watchcount", "Watches on nodes.", size.watches),
        gauge("zookeeper_numaliveconnections", "Sessions of the tree.", size.sessions),
        gauge("zookeeper_outstandingrequests", "0: operations do not queue.", 0),
        gauge("zookeeper_nodecount", "Nodes of the tree.", size.nodes),
        gauge("zookeeper_watchcount", "Watches on nodes.", size.watches),
        gauge("zookeeper_ephemerals_count", "Nodes of sessions.", size.ephemerals),
    ]
