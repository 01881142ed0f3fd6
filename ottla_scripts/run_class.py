"""`kafka-run-class`: the tools by the names of their Java classes, also of earlier versions."""

import sys

from ottla_scripts.printing import err

_SHELL = "zookeeper-shell"

# A class, or the last part of its name, and the script.
CLASSES = {
    "GetOffsetShell": "kafka-get-offsets",
    "DumpLogSegments": "kafka-dump-log",
    "ConsoleConsumer": "kafka-console-consumer",
    "ConsoleProducer": "kafka-console-producer",
    "TopicCommand": "kafka-topics",
    "ConfigCommand": "kafka-configs",
    "ConsumerGroupCommand": "kafka-consumer-groups",
    "ReassignPartitionsCommand": "kafka-reassign-partitions",
    "LeaderElectionCommand": "kafka-leader-election",
    "DeleteRecordsCommand": "kafka-delete-records",
    "LogDirsCommand": "kafka-log-dirs",
    "ProducerPerformance": "kafka-producer-perf-test",
    "ConsumerPerformance": "kafka-consumer-perf-test",
    "EndToEndLatency": "kafka-e2e-latency",
    "VerifiableProducer": "kafka-verifiable-producer",
    "VerifiableConsumer": "kafka-verifiable-consumer",
    "ClusterTool": "kafka-cluster",
    "TransactionsCommand": "kafka-transactions",
    "StreamsResetter": "kafka-streams-application-reset",
    "ReplicaVerificationTool": "kafka-replica-verification",
    "org.apache.kafka.connect.mirror.MirrorMaker": "connect-mirror-maker",
    "MirrorMaker": "kafka-mirror-maker",
    "PreferredReplicaLeaderElectionCommand": "kafka-preferred-replica-election",
    "GroupsCommand": "kafka-groups",
    "BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "FeatureCommand": "kafka-features",
    "ClientMetricsCommand": "kafka-client-metrics",
    "AclCommand": "kafka-acls",
    "JmxTool": "kafka-jmx",
    "Kafka": "kafka-server-start",
    "ZooKeeperMain": _SHELL,
    "ZooKeeperMainWithTlsSupportForKafka": _SHELL,
    "QuorumPeerMain": "zookeeper-server-start",
    "ConnectStandalone": "connect-standalone",
    "ConnectDistributed": "connect-distributed",
    "ConnectPluginPath": "connect-plugin-path",
    "DelegationTokenCommand": "kafka-delegation-tokens",
    "MetadataQuorumCommand": "kafka-metadata-quorum",
    "MetadataShell": "kafka-metadata-shell",
    "StorageTool": "kafka-storage",
    "ShareGroupCommand": "kafka-share-groups",
    "ShareConsumerPerformance": "kafka-share-consumer-perf-test",
    "ConsoleShareConsumer": "kafka-console-share-consumer",
    "VerifiableShareConsumer": "kafka-verifiable-share-consumer",
    "StreamsGroupCommand": "kafka-streams-groups",
    "ZkSecurityMigrator": "zookeeper-security-migration",
}
_DAEMONS = ("kafka-server-start", "zookeeper-server-start")


def target(command_line: list[str]) -> tuple[str, list[str]] | None:
    """Return the script for a class, and its command line; None, with an error, if it is unknown."""
    options, rest = _split(command_line)
    if not rest:
        err("USAGE: kafka-run-class [-daemon] classname [opts]")
        return None
    name, *words = rest
    script = CLASSES.get(name) or CLASSES.get(name.rpartition(".")[2])
    if script is None:
        err(f"{name} is not one of Apache Kafka's tools; known: {', '.join(CLASSES)}")
        return None
    sys.stdout.flush()
    err(f"kafka-run-class {name} is {script} today.")
    if script == _SHELL and words[:1] == ["-server"]:
        # The class names the address with an option, the script without.
        words = words[1:]
    if script in _DAEMONS and "-daemon" in options:
        words = ["-daemon", *words]
    return script, words


def _split(command_line: list[str]) -> tuple[list[str], list[str]]:
    """Return the options before the class, and the rest from the class on."""
    at = 0
    while at < len(command_line) and command_line[at].startswith("-"):
        at += 2 if command_line[at] == "-name" else 1
    return command_line[:at], command_line[at:]
