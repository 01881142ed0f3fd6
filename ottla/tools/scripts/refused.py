"""Scripts whose job Ottla does in another way or not at all: each says so, and fails."""

from ottla.tools.scripts.printing import err

_SHARE = "share groups (KIP-932) are not supported: use a consumer group and kafka-consumer-groups"
_QUORUM = "there is no KRaft quorum here: brokers keep their metadata in a ZooKeeper tree"
_CONNECT = (
    "there are no Connect workers here: `ottla pipeline run FILE.yaml` moves records between topics, "
    "files and tables (docs/pipelines.md), and `ottla topic load` and `ottla topic export` copy files"
)
REASONS = {
    "kafka-acls": "the broker has no authorizer, so that access control lists would have no effect",
    "kafka-delegation-tokens": "the broker issues no delegation tokens",
    "kafka-share-groups": _SHARE,
    "kafka-share-consumer-perf-test": _SHARE,
    "kafka-console-share-consumer": _SHARE,
    "kafka-verifiable-share-consumer": _SHARE,
    "kafka-streams-groups": "streams groups (KIP-1071) are not supported: use `ottla streams list`",
    "kafka-metadata-quorum": _QUORUM,
    "kafka-metadata-shell": f"{_QUORUM}; zookeeper-shell reads it",
    "kafka-storage": "a log directory needs no formatting: `ottla up --data DIR` creates it",
    "kafka-jmx": "there is no JMX: read http://HOST:METRICS_PORT/metrics (option metrics.listener)",
    "kafka-mirror-maker": "mirroring is not supported yet: `ottla topic export` and `load` copy a topic",
    "kafka-replica-verification": "comparing replicas is not supported yet",
    "connect-distributed": _CONNECT,
    "connect-standalone": _CONNECT,
    "connect-mirror-maker": _CONNECT,
    "connect-plugin-path": _CONNECT,
    "zookeeper-server-start": "`ottla zookeeper start` runs one, and `ottla up` needs none",
    "zookeeper-server-stop": "stop Apache ZooKeeper with its own script; the tree of `ottla up` ends with it",
    "zookeeper-security-migration": "the tree has no access control lists",
    "trogdor": "workloads and faults are in Python: ottla.testing (Cluster, faults, checkers)",
}


def run(name: str, words: list[str]) -> int:
    """Print the reason; nothing is changed."""
    err(f"{name} is not available: {REASONS[name]}.")
    return 1
