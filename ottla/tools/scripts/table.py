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
}
