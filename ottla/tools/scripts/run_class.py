"""`kafka-run-class`: the tools by the names of their Java classes, also of earlier versions."""

import sys

from ottla.tools.scripts.printing import err

# The last part of a class name, and the script.
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
    "MirrorMaker": "kafka-mirror-maker",
    "AclCommand": "kafka-acls",
    "JmxTool": "kafka-jmx",
    "Kafka": "kafka-server-start",
}


def target(command_line: list[str]) -> tuple[str, list[str]] | None:
    """Return the script for a class, and its command line; None, with an error, if it is unknown."""
    names = [word for word in command_line if not word.startswith("-")]
    if not names:
        err("USAGE: kafka-run-class [-daemon] classname [opts]")
        return None
    script = CLASSES.get(names[0].rpartition(".")[2])
    if script is None:
        err(f"{names[0]} is not one of Apache Kafka's tools; known: {', '.join(CLASSES)}")
        return None
    sys.stdout.flush()
    err(f"kafka-run-class {names[0]} is {script} today.")
    return script, command_line[command_line.index(names[0]) + 1 :]
