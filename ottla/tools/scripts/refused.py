"""Scripts without a counterpart in Ottla: each prints the reason and fails."""

from ottla.tools.scripts.printing import err

_SHARE = "share groups (KIP-932) are not supported; use a consumer group and kafka-consumer-groups"
_QUORUM = "there is no KRaft quorum; brokers keep their metadata in a ZooKeeper tree"
REASONS = {
    "kafka-delegation-tokens": "the broker issues no delegation tokens",
    "kafka-share-groups": _SHARE,
    "kafka-share-consumer-perf-test": _SHARE,
    "kafka-console-share-consumer": _SHARE,
    "kafka-verifiable-share-consumer": _SHARE,
    "kafka-streams-groups": "streams groups (KIP-1071) are not supported; use `ottla streams list`",
    "kafka-metadata-quorum": _QUORUM,
    "kafka-metadata-shell": f"{_QUORUM}. Use zookeeper-shell to read it",
    "kafka-storage": "a log directory needs no formatting; `ottla up --data DIR` creates it",
    "zookeeper-security-migration": "the tree has no access control lists",
}


def run(name: str, command_line: list[str]) -> int:
    """Print the reason; nothing is changed."""
    err(f"{name} is not available: {REASONS[name]}.")
    return 1
