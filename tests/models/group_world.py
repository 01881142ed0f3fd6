"""The common part of the group models: a coordinator on virtual time, and a log with faults."""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from ottla.base.errors import ErrorCode
from ottla.base.options import Snapshot
from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.cluster.image import ClusterImage
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.cluster.options.option_tables import BROKER_OPTIONS
from ottla.coordinators.groups.service import GroupCoordinator
from ottla.coordinators.groups.shard import GroupShard
from ottla.coordinators.loading import Loader
from ottla.testing.partitions import MemoryPartitions
from ottla.testing.sim.loop import SimLoop, VirtualClock

SETTINGS = settings(
    max_examples=int(os.environ.get("OTTLA_MODEL_EXAMPLES", "40")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


class GroupWorld(RuleBasedStateMachine):
    """The rules are faults of log and broker, and the time; models add clients and invariants."""

    image: ClusterImage
    options: Snapshot

    def __init__(self):
        super().__init__()
        self.loop = SimLoop(SeededRng(1))
        self.clock = VirtualClock(self.loop)
        self.rng = SeededRng(2)
        self.log = MemoryPartitions()
        self.failures = []
        self.tasks = Tasks(lambda name, error: self.failures.append((name, error)))
        self.clients = []
        self.options = BROKER_OPTIONS.parse({})
        self.epoch = 1

    def teardown(self):
        try:
            self._run(self._end())
            self.loop.raise_failures()
        finally:
            self.loop.close()
        assert self.failures == []

    async def _end(self):
        self.log.holds_commits, self.log.refuses = False, None
        self.log.commit()
        await self._calm_down()
        self.coordinator.close()
        await self.tasks.close()

    async def _calm_down(self):
        """Wait until everything is settled, now that the log works again."""
        raise AssertionError("a model says what has to come to rest")

    def _run(self, work):
        self.loop.run(self._then_settle(work))

    async def _then_settle(self, work):
        await work
        await self.clock.sleep(0.001)
        while self._act():
            await self.clock.sleep(0.001)

    def _act(self):
        """Let clients process responses; return whether there were any."""
        return False

    async def _restart(self):
        if self.epoch > 1:
            self.coordinator.close()
        self.epoch += 2
        self.coordinator = GroupCoordinator(
            writer=self.log,
            clock=self.clock,
            rng=self.rng,
            tasks=self.tasks,
            options=lambda: self.options,
            image=lambda: self.image,
        )
        self.coordinator.load(0, self.epoch)

    def _shard(self):
        """The coordinator's only partition; None if it is not loaded."""
        if self.epoch == 1:
            return None
        shard = self.coordinator.runtime.find(0)
        return None if isinstance(shard, ErrorCode) else shard

    def _loaded(self):
        """The same partition, as another coordinator would load it from the log."""
        loaded = GroupShard(None, self.clock, lambda: None)
        loader = Loader(self.log, self.clock, chunk_bytes=1000, is_wanted=lambda: True)
        self.loop.run(loader.load(GROUP_OFFSETS_TOPIC, 0, loaded))
        return loaded

    @rule(seconds=st.sampled_from([0.01, 1, 6, 11, 31, 46, 70]))
    def time_passes(self, seconds):
        self._run(self.clock.sleep(seconds))

    @rule()
    def log_stalls(self):
        self.log.holds_commits = True

    @rule()
    def log_resumes(self):
        async def resume():
            self.log.holds_commits = False
            self.log.commit()

        self._run(resume())

    @rule()
    def log_loses_its_tail(self):
        async def lose():
            self.log.holds_commits = False
            self.log.lose()

        self._run(lose())

    @rule(code=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def log_refuses(self, code):
        self.log.refuses = code

    @rule()
    def broker_restarts(self):
        async def restart():
            # A broker that dies loses uncommitted records.
            self.log.lose()
            await self._restart()

        self._run(restart())
