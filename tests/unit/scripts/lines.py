"""Command lines of every script: `$B` is the address of a broker, `$D` a folder with files."""

from ottla_scripts.refused import REASONS

_B = "--bootstrap-server $B"
# Command lines of each script, without `--output json`; an empty list for those that only refuse.
LINES: dict[str, list[str]] = {
    "kafka-topics": [
        f"{_B} --list", f"{_B} --describe", f"{_B} --create --topic new --partitions 2",
        f"{_B} --alter --topic new --partitions 3", f"{_B} --delete --topic new",
    ],
    "kafka-configs": [
        f"{_B} --describe --entity-type topics --entity-name a",
        f"{_B} --describe --entity-type brokers", f"{_B} --describe --entity-type users",
        f"{_B} --alter --topic a --add-config retention.ms=3600000",
        f"{_B} --alter --client app --add-config producer_byte_rate=1000",
    ],
    "kafka-console-producer": [f"{_B} --topic a"],
    "kafka-console-consumer": [
        f"{_B} --topic a --from-beginning --max-messages 3 --timeout-ms 9000 "
        "--property print.key=true --enable-systest-events",
    ],
    "kafka-consumer-groups": [
        f"{_B} --list", f"{_B} --list --state", f"{_B} --describe --group g",
        f"{_B} --describe --group g --members", f"{_B} --describe --group g --state",
        f"{_B} --describe --all-groups",
        f"{_B} --reset-offsets --group g --topic a --to-earliest --dry-run",
        f"{_B} --reset-offsets --group g --topic a --to-earliest --execute",
        f"{_B} --delete-offsets --group g --topic a", f"{_B} --delete --group g",
    ],
    "kafka-get-offsets": [_B, f"{_B} --topic a --time earliest"],
    "kafka-log-dirs": [f"{_B} --describe"],
    "kafka-delete-records": [f"{_B} --offset-json-file $D/offsets.json"],
    "kafka-leader-election": [f"{_B} --election-type preferred --all-topic-partitions"],
    "kafka-preferred-replica-election": [_B],
    "kafka-reassign-partitions": [
        f"{_B} --list", f"{_B} --execute --reassignment-json-file $D/moves.json",
        f"{_B} --verify --reassignment-json-file $D/moves.json",
        f"{_B} --cancel --reassignment-json-file $D/moves.json",
        f"{_B} --generate --topics-to-move-json-file $D/topics.json --broker-list 1",
    ],
    "kafka-producer-perf-test": [f"{_B} --topic p --num-records 9 --record-size 5 --throughput -1"],
    "kafka-consumer-perf-test": [f"{_B} --topic a --num-records 1 --timeout 9000",
                                 f"{_B} --topic a --messages 1 --timeout 9000 --show-detailed-stats "
                                 "--reporting-interval 1"],
    "kafka-e2e-latency": [f"{_B} --topic e --num-records 3 --producer-acks 1 --record-size 5"],
    "kafka-verifiable-producer": [f"{_B} --topic v --max-messages 2"],
    "kafka-verifiable-consumer": [f"{_B} --topic a --group-id w --max-messages 1"],
    "kafka-dump-log": [
        *(f"--files $D/dumped-0/{0:020}{end}" for end in (".log", ".index", ".timeindex")),
        f"--files $D/dumped-0/{7:020}.snapshot",
    ],
    "kafka-groups": [f"{_B} --list"],
    # Ottla's broker has neither share groups nor streams groups.
    "kafka-streams-groups": [
        f"{_B} --list", f"{_B} --list --state", f"{_B} --describe --all-groups",
        f"{_B} --delete --group g", f"{_B} --reset-offsets --all-groups --to-latest --dry-run",
        f"{_B} --delete-offsets --group g --input-topic a",
    ],
    "kafka-share-groups": [
        f"{_B} --list", f"{_B} --list --state", f"{_B} --describe --all-groups --members",
        f"{_B} --describe --group g", f"{_B} --delete --group g --group h",
        f"{_B} --delete-offsets --group g --topic a",
    ],
    "kafka-cluster": [f"cluster-id {_B}", f"list-endpoints {_B}"],
    "kafka-broker-api-versions": [_B],
    "kafka-features": [
        f"{_B} describe", "version-mapping", "feature-dependencies --feature group.version=1",
    ],
    "kafka-client-metrics": [
        f"{_B} --list", f"{_B} --alter --name m --metrics org.apache --interval 1000",
        f"{_B} --describe", f"{_B} --describe --name m", f"{_B} --delete --name m",
    ],
    "kafka-transactions": [
        f"{_B} list", f"{_B} describe-producers --topic a --partition 0",
        f"{_B} find-hanging --topic a",
    ],
    "kafka-storage": [
        "random-uuid", "version-mapping", "feature-dependencies -f group.version=1",
        "format -s -t abc -c $D/server.properties", "info -c $D/server.properties",
        "format -s -g -t abc -c $D/server.properties",
    ],
    "kafka-run-class": [f"kafka.tools.GetOffsetShell {_B}"],
    "kafka-streams-application-reset": [f"{_B} --application-id s --input-topics a --dry-run"],
    "kafka-mirror-maker": [
        "--consumer.config $D/source.properties --producer.config $D/target.properties --include a "
        "--target-topic copy --until-end",
    ],
    "kafka-jmx": ["--jmx-url $J --one-time --object-name kafka.server:type=ReplicaManager,*"],
    "trogdor": ["check $D/plan.toml"],
}  # fmt: skip
# Scripts that fail here, as Apache Kafka's do without their server, and those that only say why.
FAILING: dict[str, str] = {
    "kafka-acls": f"{_B} --list",
    "kafka-delegation-tokens": f"{_B} --command-config $D/worker.properties --describe",
    "kafka-metadata-quorum": f"{_B} describe --status",
    "kafka-server-start": "", "kafka-server-stop": "",
    "zookeeper-server-start": "", "zookeeper-server-stop": "", "zookeeper-shell": "",
    "zookeeper-security-migration": "--zookeeper.acl secure",
    "kafka-replica-verification": "--broker-list $B --topics-include none",
    "connect-standalone": "$D/worker.properties $D/connector.properties",
    "connect-distributed": "", "connect-mirror-maker": "", "connect-plugin-path": "",
    "connect-internal-topics": "",
    **dict.fromkeys(REASONS, ""),
}  # fmt: skip
