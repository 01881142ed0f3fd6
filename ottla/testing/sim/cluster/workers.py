"""The state that the clients of a simulated cluster share: the history, the end of the work, and
progress.
"""

from dataclasses import dataclass, field

from ottla.testing.checkers.kafka import ClusterHistory
from ottla.testing.sim.cluster.brokers import SimCluster
from ottla.testing.sim.cluster.clients import ClusterClient

# Records of topic STRICT are sent with acks=all, records of LOOSE with acks=1, records of JOINT in
# transactions.
STRICT, LOOSE, JOINT = "strict", "loose", "joint"


@dataclass
class Work:
    """The state that all workers share; `is_over` is set when they should finish."""

    cluster: SimCluster
    partitions: int
    history: ClusterHistory = field(default_factory=ClusterHistory)
    is_over: bool = False
    # Set when the faults are over: what changes the cluster itself ends then.
    is_healed: bool = False
    # The member of a group that has a partition, with the consumer protocol.
    owners: dict[tuple[str, int], str] = field(default_factory=dict)
    # The longest time between two acknowledgements of one producer with acks=all, in seconds.
    longest_gap_seconds: float = 0.0
    # Facts that no history can express, such as an error that the protocol excludes.
    complaints: list[str] = field(default_factory=list)


class Worker:
    """One client at work; `progress` counts what the cluster acknowledged."""

    def __init__(self, work: Work, name: str) -> None:
        self.work = work
        self.name = name
        self.client = ClusterClient(work.cluster, name)
        self.rng = self.client.rng
        self.progress = 0
        # The state in which the worker waits, for reports.
        self.state = "starts"

    async def run(self) -> None:
        """Work until the run is over and every request that can be retried has a definite
        result.
        """
        raise AssertionError("a subclass defines the work")

    def complain(self, text: str) -> None:
        """Report a fact that contradicts the protocol."""
        self.work.complaints.append(f"{self.name}: {text}")
