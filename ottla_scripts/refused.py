"""Scripts without a counterpart in Ottla: each prints the reason and fails."""

from typing import NamedTuple

from ottla_scripts.printing import err


class Refusal(NamedTuple):
    """Why a script is not available, and the command of `ottla` to use, empty if no command fits."""

    reason: str
    verb: str = ""


_SHARE = (
    "Ottla's clients have no share consumer (KIP-932); the members of a consumer group divide the "
    "partitions instead"
)
REASONS = {
    "kafka-share-consumer-perf-test": Refusal(_SHARE, "perf consume"),
    "kafka-console-share-consumer": Refusal(_SHARE, "consume"),
    "kafka-verifiable-share-consumer": Refusal(_SHARE, "perf verifiable-consume"),
    "kafka-metadata-shell": Refusal(
        "there is no KRaft quorum; brokers keep their metadata in a ZooKeeper tree",
        "zookeeper shell",
    ),
}


def run(name: str, command_line: list[str]) -> int:
    """Print the reason; nothing is changed."""
    reason, verb = REASONS[name]
    remedy = f" Use `ottla {verb}`." if verb else ""
    err(f"{name} is not available: {reason}.{remedy}")
    return 1
