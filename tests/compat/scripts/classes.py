"""The main classes of Apache Kafka's scripts, for recording."""

_TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "kafka-topics": f"{_TOOLS}.TopicCommand",
    "kafka-console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{_TOOLS}.ConsoleProducer",
    "kafka-consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-get-offsets": f"{_TOOLS}.GetOffsetShell",
    "kafka-log-dirs": f"{_TOOLS}.LogDirsCommand",
    "kafka-dump-log": f"{_TOOLS}.DumpLogSegments",
    "kafka-metadata-quorum": f"{_TOOLS}.MetadataQuorumCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-reassign-partitions": f"{_TOOLS}.reassign.ReassignPartitionsCommand",
    "kafka-leader-election": f"{_TOOLS}.LeaderElectionCommand",
    "kafka-delete-records": f"{_TOOLS}.DeleteRecordsCommand",
    "kafka-broker-api-versions": f"{_TOOLS}.BrokerApiVersionsCommand",
    "kafka-transactions": f"{_TOOLS}.TransactionsCommand",
    "kafka-producer-perf-test": f"{_TOOLS}.ProducerPerformance",
    "kafka-consumer-perf-test": f"{_TOOLS}.ConsumerPerformance",
    "kafka-e2e-latency": f"{_TOOLS}.EndToEndLatency",
    "kafka-verifiable-producer": f"{_TOOLS}.VerifiableProducer",
    "kafka-verifiable-consumer": f"{_TOOLS}.VerifiableConsumer",
    "kafka-cluster": f"{_TOOLS}.ClusterTool",
    "kafka-features": f"{_TOOLS}.FeatureCommand",
    "kafka-client-metrics": f"{_TOOLS}.ClientMetricsCommand",
    "kafka-groups": f"{_TOOLS}.GroupsCommand",
    "kafka-share-groups": f"{_TOOLS}.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": f"{_TOOLS}.streams.StreamsGroupCommand",
    "kafka-replica-verification": f"{_TOOLS}.ReplicaVerificationTool",
    "kafka-streams-application-reset": f"{_TOOLS}.StreamsResetter",
    "kafka-acls": f"{_TOOLS}.AclCommand",
    "kafka-delegation-tokens": f"{_TOOLS}.DelegationTokenCommand",
    "kafka-jmx": f"{_TOOLS}.JmxTool",
    "kafka-mirror-maker": "kafka.tools.MirrorMaker",
    "zookeeper-security-migration": "kafka.admin.ZkSecurityMigrator",
    "zookeeper-shell": "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka",
    "kafka-preferred-replica-election": "kafka.admin.PreferredReplicaLeaderElectionCommand",
}
# These read standard input, or end the JVM from threads of their own: each gets a JVM.
ALONE = frozenset({
    "kafka-console-producer", "kafka-console-consumer", "kafka-producer-perf-test",
    "kafka-consumer-perf-test", "kafka-e2e-latency", "kafka-verifiable-producer",
    "kafka-verifiable-consumer",
})  # fmt: skip
# The words that the script itself writes before the words of its command line.
WORDS = {"zookeeper-shell": ["-server"]}
# A ZooKeeper's users and their passwords.
USERS = {"kafka": "secret", "other": "secret"}
