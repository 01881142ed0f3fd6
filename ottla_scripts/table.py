"""The table of scripts: Apache Kafka's name, our module, and the `ottla` command for the same job."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla_scripts.refused import REASONS

# The first version of Apache Kafka that has a script, and the version that has removed it.
_0_7, _0_8 = "0.7", "0.8"
VERSIONS: Mapping[str, tuple[str, str]] = {
    "connect-distributed": ("0.9", ""),
    "connect-internal-topics": ("4.4", ""),
    "connect-mirror-maker": ("2.4", ""),
    "connect-plugin-path": ("3.6", ""),
    "connect-standalone": ("0.9", ""),
    "kafka-acls": ("0.9", ""),
    "kafka-broker-api-versions": ("0.10.2", ""),
    "kafka-client-metrics": ("3.7", ""),
    "kafka-cluster": ("2.8", ""),
    "kafka-configs": ("0.9", ""),
    "kafka-console-consumer": (_0_7, ""),
    "kafka-console-producer": (_0_7, ""),
    "kafka-console-share-consumer": ("4.0", ""),
    "kafka-consumer-groups": ("0.9", ""),
    "kafka-consumer-perf-test": (_0_7, ""),
    "kafka-delegation-tokens": ("1.1", ""),
    "kafka-delete-records": ("0.11", ""),
    "kafka-dump-log": ("2.0", ""),
    "kafka-e2e-latency": ("3.5", ""),
    "kafka-features": ("2.7", ""),
    "kafka-get-offsets": ("3.0", ""),
    "kafka-groups": ("4.0", ""),
    "kafka-jmx": ("3.5", ""),
    "kafka-leader-election": ("2.4", ""),
    "kafka-log-dirs": ("1.0", ""),
    "kafka-metadata-quorum": ("3.3", ""),
    "kafka-metadata-shell": ("2.8", ""),
    "kafka-mirror-maker": ("0.8.2", "4.0"),
    "kafka-preferred-replica-election": (_0_8, "3.0"),
    "kafka-producer-perf-test": (_0_7, ""),
    "kafka-reassign-partitions": (_0_8, ""),
    "kafka-replica-verification": ("0.8.2", ""),
    "kafka-run-class": (_0_7, ""),
    "kafka-server-start": (_0_7, ""),
    "kafka-server-stop": (_0_7, ""),
    "kafka-share-consumer-perf-test": ("4.1", ""),
    "kafka-share-groups": ("4.0", ""),
    "kafka-storage": ("2.8", ""),
    "kafka-streams-application-reset": ("0.10.0.1", ""),
    "kafka-streams-groups": ("4.1", ""),
    "kafka-topics": ("0.8.1", ""),
    "kafka-transactions": ("3.0", ""),
    "kafka-verifiable-consumer": ("0.9", ""),
    "kafka-verifiable-producer": ("0.9", ""),
    "kafka-verifiable-share-consumer": ("4.0", ""),
    "trogdor": ("1.0", ""),
    "zookeeper-security-migration": ("0.9", "4.0"),
    "zookeeper-server-start": (_0_7, "4.0"),
    "zookeeper-server-stop": (_0_7, "4.0"),
    "zookeeper-shell": (_0_7, "4.0"),
}
# The version whose options and output the scripts have.
KAFKA_VERSION = "4.3.0"
_HERE = "ottla_scripts"
_CONNECT = {
    "connect-standalone": ("pipeline run", "Translate file connectors to pipelines."),
    "connect-distributed": ("pipeline run", "Not available: Spark distributes a pipeline's work."),
    "connect-mirror-maker": ("topic copy", "Not available: a copy needs no Connect workers."),
    "connect-plugin-path": ("", "Not available: a pipeline has no plug-ins."),
    "connect-internal-topics": (
        "",
        "Not available: a pipeline keeps its positions in a checkpoint.",
    ),
}


class Script(NamedTuple):
    """One script. `verb` is the command of `ottla` that does the same, empty if no command fits.

    `moves_records`: the script reads or writes records, for which it loads librdkafka.
    """

    module: str
    verb: str
    summary: str
    moves_records: bool = False


SCRIPTS: Mapping[str, Script] = {
    "kafka-topics": Script(
        f"{_HERE}.admin.topics", "topic", "Create, list, describe, alter and delete topics."
    ),
    "kafka-configs": Script(
        f"{_HERE}.admin.configs",
        "topic config",
        "Show and change configurations, quotas and users.",
    ),
    "kafka-console-producer": Script(
        f"{_HERE}.console.producer", "produce", "Write records, one per line of input.", True
    ),
    "kafka-console-consumer": Script(
        f"{_HERE}.console.consumer", "consume", "Read records and print them.", True
    ),
    "kafka-consumer-groups": Script(
        f"{_HERE}.groups.command", "group", "List, describe, reset and delete consumer groups."
    ),
    "kafka-get-offsets": Script(
        f"{_HERE}.admin.get_offsets", "topic describe", "Show offsets of partitions."
    ),
    "kafka-log-dirs": Script(
        f"{_HERE}.replicas.log_dirs", "log dirs", "Show the sizes of replicas by log directory."
    ),
    "kafka-delete-records": Script(
        f"{_HERE}.replicas.delete_records", "topic trim", "Delete records before an offset."
    ),
    "kafka-leader-election": Script(
        f"{_HERE}.replicas.leader_election",
        "cluster elect",
        "Elect the preferred leaders of partitions.",
    ),
    "kafka-reassign-partitions": Script(
        f"{_HERE}.replicas.reassign", "cluster move", "Move partitions between brokers."
    ),
    "kafka-producer-perf-test": Script(
        f"{_HERE}.perf.producer",
        "perf produce",
        "Measure the rate and the latency of a producer.",
        True,
    ),
    "kafka-consumer-perf-test": Script(
        f"{_HERE}.perf.consumer", "perf consume", "Measure the rate of a consumer.", True
    ),
    "kafka-e2e-latency": Script(
        f"{_HERE}.perf.latency",
        "perf latency",
        "Measure the latency from producer to consumer.",
        True,
    ),
    "kafka-verifiable-producer": Script(
        f"{_HERE}.perf.verifiable_producer",
        "perf verifiable-produce",
        "Write numbers, an event of JSON for each.",
        True,
    ),
    "kafka-verifiable-consumer": Script(
        f"{_HERE}.perf.verifiable_consumer",
        "perf verifiable-consume",
        "Read records, with events as JSON.",
        True,
    ),
    "kafka-dump-log": Script(
        f"{_HERE}.logs.dump", "log dump", "Print segments, indexes and snapshots."
    ),
    "kafka-storage": Script(
        f"{_HERE}.logs.storage", "log format", "Format log directories, and generate ids."
    ),
    "kafka-preferred-replica-election": Script(
        f"{_HERE}.replicas.preferred_election",
        "cluster elect",
        "Elect preferred leaders (now kafka-leader-election).",
    ),
    "kafka-acls": Script(
        f"{_HERE}.access.acls", "acl", "Manage access control lists of clusters that have them."
    ),
    "kafka-delegation-tokens": Script(
        f"{_HERE}.access.delegation_tokens",
        "token",
        "Manage delegation tokens of clusters that issue them.",
    ),
    "kafka-streams-groups": Script(
        f"{_HERE}.groups.streams.command",
        "streams list",
        "List, describe, reset and delete streams groups of Apache Kafka.",
    ),
    "kafka-share-groups": Script(
        f"{_HERE}.groups.share.command",
        "group",
        "List, describe, reset and delete share groups of Apache Kafka.",
    ),
    "kafka-groups": Script(f"{_HERE}.groups.listing", "group list", "List groups of all types."),
    "kafka-cluster": Script(
        f"{_HERE}.admin.cluster", "cluster info", "Show the cluster's id and brokers."
    ),
    "kafka-broker-api-versions": Script(
        f"{_HERE}.admin.api_versions", "broker apis", "Show the API versions of brokers."
    ),
    "kafka-features": Script(
        f"{_HERE}.admin.features", "cluster features", "Show the levels of features."
    ),
    "kafka-metadata-quorum": Script(
        f"{_HERE}.replicas.metadata_quorum",
        "cluster quorum",
        "Describe and change the quorum of a KRaft cluster.",
    ),
    "kafka-client-metrics": Script(
        f"{_HERE}.admin.client_metrics", "metrics", "Manage subscriptions to metrics of clients."
    ),
    "kafka-transactions": Script(
        f"{_HERE}.admin.transactions", "transaction", "List, describe and abort transactions."
    ),
    "kafka-run-class": Script(
        f"{_HERE}.run_class", "scripts run", "Run a tool by the name of its Java class."
    ),
    "kafka-server-start": Script(
        f"{_HERE}.servers.broker", "up", "Start a broker with a properties file."
    ),
    "kafka-server-stop": Script(
        f"{_HERE}.servers.broker",
        "broker stop",
        "Stop the brokers that kafka-server-start started.",
    ),
    "zookeeper-shell": Script(
        f"{_HERE}.servers.zookeeper_shell",
        "zookeeper shell",
        "Show and change nodes of a ZooKeeper.",
    ),
    "zookeeper-server-start": Script(
        f"{_HERE}.servers.zookeeper_server", "zookeeper start", "Start a ZooKeeper."
    ),
    "zookeeper-server-stop": Script(
        f"{_HERE}.servers.zookeeper_server",
        "zookeeper stop",
        "Stop the ZooKeepers that zookeeper-server-start started.",
    ),
    "zookeeper-security-migration": Script(
        f"{_HERE}.servers.zookeeper_security",
        "zookeeper secure",
        "Set the access control lists of a cluster's nodes in a ZooKeeper.",
    ),
    "kafka-replica-verification": Script(
        f"{_HERE}.replicas.verification", "replica verify", "Compare replicas until stopped."
    ),
    "kafka-streams-application-reset": Script(
        f"{_HERE}.applications.reset", "streams reset", "Reset the offsets of an application."
    ),
    "kafka-mirror-maker": Script(
        f"{_HERE}.applications.mirror_maker", "topic copy", "Copy topics to another cluster."
    ),
    **{
        name: Script(f"{_HERE}.applications.connect", verb, summary)
        for name, (verb, summary) in _CONNECT.items()
    },
    "kafka-jmx": Script(
        f"{_HERE}.jmx.tool", "broker metrics", "Print the values of JMX beans, over HTTP."
    ),
    "trogdor": Script(
        f"{_HERE}.perf.trogdor",
        "perf workload",
        "Run producers, consumers and faults of a TOML file.",
    ),
    **{
        name: Script(f"{_HERE}.refused", verb, f"Not available: {reason}.")
        for name, (reason, verb) in REASONS.items()
    },
}
