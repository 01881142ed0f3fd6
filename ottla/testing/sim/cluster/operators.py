"""An operator who enables unclean elections for a partition whose in-sync replicas are gone.

The partition belongs to a topic of the operator's own, which has no records: the other topics keep
every acknowledged one. The option has to give the partition a leader at once, as in Apache Kafka.
"""

from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.cluster.image import NO_LEADER
from ottla.cluster.znodes import BrokerIdNode
from ottla.testing.sim.cluster.clients import Refused, Unavailable, check
from ottla.testing.sim.cluster.workers import Work, Worker
from ottla.wire.messages import create_topics, incremental_alter_configs

SPARE = "spare"
_OPTION = "unclean.leader.election.enable"
_LOOK_SECONDS = 0.05
# Simulated, from the response to the alteration: the controller hears of it through the tree.
ELECTION_SECONDS_MAX = 0.5


class _Offline(NamedTuple):
    """The offline partition as one controller knows it."""

    controller_epoch: int
    leader_epoch: int


class ClusterOperator(Worker):
    """Waits until the partition has no leader and no registered in-sync replica, and enables
    unclean elections for that time.
    """

    def __init__(self, work: Work, name: str, replicas: int) -> None:
        super().__init__(work, name)
        self._replicas = replicas

    async def run(self) -> None:
        """Create the topic, and help its partition until the faults are over."""
        while not self.work.is_healed:
            try:
                await self._create()
                offline = self._offline()
                if offline is not None:
                    await self._help(offline)
            except (Unavailable, Refused) as error:
                self.state = str(error)
            await self.client.clock.sleep(_LOOK_SECONDS)
        self.client.close()

    async def _create(self) -> None:
        if self.progress:
            return
        topic = create_topics.CreatableTopic(
            name=SPARE, num_partitions=1, replication_factor=self._replicas
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=3000)
        response = await self.client.ask_any(request, 7, create_topics.CreateTopicsResponse)
        code = response.topics[0].error_code
        if code != ErrorCode.TOPIC_ALREADY_EXISTS:
            check(code)
        self.progress += 1

    def _offline(self) -> _Offline | None:
        """Return the partition, if only an unclean election gives it a leader now."""
        cluster = self.work.cluster
        registered = cluster.coordination.tree.nodes
        for broker_id in cluster.controllers:
            image = cluster.nodes[broker_id].broker.controller.image
            partition = image.partition(SPARE, 0)
            if (
                partition is not None
                and partition.leader == NO_LEADER
                and any(replica in image.brokers for replica in partition.replicas)
                and not any(BrokerIdNode.path(key) in registered for key in partition.isr)
            ):
                return _Offline(image.controller_epoch, partition.leader_epoch)
        return None

    async def _help(self, offline: _Offline) -> None:
        clock = self.client.clock
        await self._alter("true")
        deadline = clock.monotonic() + ELECTION_SECONDS_MAX
        while self._offline() == offline:
            if clock.monotonic() > deadline:
                self.complain("unclean elections are enabled, and the partition has no leader")
                break
            await clock.sleep(_LOOK_SECONDS)
        self.progress += 1
        await self._alter("false")

    def _serving(self) -> int:
        """Return a random broker that serves clients; raises Unavailable."""
        serving = [key for key in self.work.cluster.ids if self.work.cluster.is_serving(key)]
        if not serving:
            raise Unavailable("no broker serves clients")
        return serving[self.rng.below(len(serving))]

    async def _alter(self, value: str) -> None:
        change = incremental_alter_configs.AlterableConfig(
            name=_OPTION, config_operation=0, value=value
        )
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=2, resource_name=SPARE, configs=[change]
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
        response = await self.client.ask(
            self._serving(), request, 1, incremental_alter_configs.IncrementalAlterConfigsResponse
        )
        check(response.responses[0].error_code)
