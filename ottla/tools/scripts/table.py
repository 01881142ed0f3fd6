"""The table of scripts: Apache Kafka's name, our module, and the `ottla` command for the same job."""

from collections.abc import Mapping
from typing import NamedTuple

# The version whose options and output the scripts have.
KAFKA_VERSION = "4.3.0"
_HERE = "ottla.tools.scripts"


class Script(NamedTuple):
    """One script. `verb` is the command of `ottla` that does the same, empty if there is none.

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
        f"{_HERE}.admin.configs", "topic config", "Show and change configurations and quotas."
    ),
    "kafka-console-producer": Script(
        f"{_HERE}.console.producer", "produce", "Write lines as records.", True
    ),
    "kafka-console-consumer": Script(
        f"{_HERE}.console.consumer", "consume", "Write records as lines.", True
    ),
    "kafka-consumer-groups": Script(
        f"{_HERE}.groups.command", "group", "List, describe, reset and delete consumer groups."
    ),
    "kafka-get-offsets": Script(
        f"{_HERE}.admin.get_offsets", "topic describe", "Show offsets of partitions."
    ),
    "kafka-log-dirs": Script(
        f"{_HERE}.replicas.log_dirs", "", "Show the sizes of replicas by log directory."
    ),
    "kafka-delete-records": Script(
        f"{_HERE}.replicas.delete_records", "", "Delete records before an offset."
    ),
    "kafka-leader-election": Script(
        f"{_HERE}.replicas.leader_election", "", "Elect the preferred leaders of partitions."
    ),
    "kafka-reassign-partitions": Script(
        f"{_HERE}.replicas.reassign", "", "Move partitions between brokers."
    ),
    "kafka-producer-perf-test": Script(
        f"{_HERE}.perf.producer", "", "Measure the rate and the latency of a producer.", True
    ),
    "kafka-consumer-perf-test": Script(
        f"{_HERE}.perf.consumer", "", "Measure the rate of a consumer.", True
    ),
    "kafka-e2e-latency": Script(
        f"{_HERE}.perf.latency", "", "Measure the latency from producer to consumer.", True
    ),
    "kafka-verifiable-producer": Script(
        f"{_HERE}.perf.verifiable_producer", "", "Write numbers, an event of JSON for each.", True
    ),
    "kafka-verifiable-consumer": Script(
        f"{_HERE}.perf.verifiable_consumer", "", "Read records, with events as JSON.", True
    ),
    "kafka-dump-log": Script(
        f"{_HERE}.logs.dump", "log dump", "Print segments, indexes and snapshots."
    ),
}
