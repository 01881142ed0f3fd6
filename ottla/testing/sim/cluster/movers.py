"""Moves the partitions of a simulated cluster to other brokers while clients use them (KIP-455)."""

from ottla.testing.sim.cluster.clients import Refused, Unavailable, check
from ottla.testing.sim.cluster.workers import JOINT, LOOSE, STRICT, Work, Worker
from ottla.wire.messages import alter_partition_reassignments

_TOPICS = (STRICT, LOOSE, JOINT)


class Mover(Worker):
    """Reassigns one partition after the other to random replicas, and cancels some reassignments."""

    def __init__(self, work: Work, name: str, replicas: int) -> None:
        super().__init__(work, name)
        self._replicas = replicas

    async def run(self) -> None:
        """Move partitions until the faults are over."""
        while not self.work.is_healed:
            try:
                await self._move()
                self.progress += 1
            except (Unavailable, Refused) as error:
                # Another reassignment, or none, is in progress; or a replica is not alive.
                self.state = str(error)
            await self.client.clock.sleep((100 + self.rng.below(900)) / 1000)
        self.client.close()

    async def _move(self) -> None:
        partition = alter_partition_reassignments.ReassignablePartition(
            partition_index=self.rng.below(self.work.partitions), replicas=self._target()
        )
        topic = alter_partition_reassignments.ReassignableTopic(
            name=_TOPICS[self.rng.below(len(_TOPICS))], partitions=[partition]
        )
        request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=2000, topics=[topic]
        )
        response = await self.client.ask_any(
            request, 1, alter_partition_reassignments.AlterPartitionReassignmentsResponse
        )
        check(response.error_code)
        check(response.responses[0].partitions[0].error_code)

    def _target(self) -> list[int] | None:
        """Return replicas; None, which cancels, once in four times."""
        if self.rng.below(4) == 0:
            return None
        unused = list(self.work.cluster.ids)
        return [unused.pop(self.rng.below(len(unused))) for _ in range(self._replicas)]
