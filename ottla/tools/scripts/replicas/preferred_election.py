"""`kafka-preferred-replica-election`, which Apache Kafka 3.0 replaced with kafka-leader-election."""

from ottla.tools.scripts.printing import err
from ottla.tools.scripts.replicas.leader_election import SPEC, on_parse_error, run

__all__ = ["SPEC", "on_parse_error", "rewrite", "run"]


def rewrite(words: list[str]) -> list[str]:
    """Return the words of kafka-leader-election."""
    err("Option: use kafka-leader-election --election-type preferred instead.")
    scope = [] if "--path-to-json-file" in words else ["--all-topic-partitions"]
    return [*words, "--election-type", "preferred", *scope]
