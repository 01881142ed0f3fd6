"""A wake-up of a follower's fetch that waits costs what has changed, not all of its partitions."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.base.errors import ErrorCode
from ottla.replication.delayed import Watched
from ottla.replication.partition import Partition
from ottla.server.fetch.followers import FollowerFetch
from ottla.server.fetch.sessions import PartitionFetch
from ottla.testing.sim.cluster.clients import ClusterClient
from ottla.testing.sim.cluster.producers import ACKS_ALL, batch_of, produce_request
from ottla.testing.sim.world import World
from ottla.wire.messages.produce import ProduceResponse

from .cluster import SimCluster

pytestmark = pytest.mark.slow

_RECORDS = 20
_FEW, _MANY = 3, 300


@contextmanager
def counted_reads() -> Iterator[list[PartitionFetch]]:
    """Yield the reads of partitions for followers, during the block."""
    reads: list[PartitionFetch] = []
    find = vars(FollowerFetch)["_find"]

    def noted(self: FollowerFetch, fetch: PartitionFetch) -> Partition:
        reads.append(fetch)
        found: Partition = find(self, fetch)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FollowerFetch, "_find", noted)
        yield reads


def reads_for_records(partitions: int) -> int:
    """Return how often partitions are read for followers while records go to one of them."""
    with World(1) as world, counted_reads() as reads:
        cluster = SimCluster(world, 3)

        async def scenario() -> int:
            await cluster.start()
            await cluster.create(1, "t", partitions, 3)
            await cluster.until(lambda: cluster.agrees("t", count=partitions))
            await cluster.until(lambda: not cluster.problems())
            # The fetches wait now.
            await cluster.clock.sleep(3.0)
            image = cluster.nodes[1].broker.image.partition("t", 0)
            assert image is not None
            client = ClusterClient(cluster, "producer")
            before = len(reads)
            for number in range(_RECORDS):
                request = produce_request("t", 0, batch_of(client, [str(number)]), ACKS_ALL)
                response = await client.ask(image.leader, request, 9, ProduceResponse)
                (row,) = response.responses[0].partition_responses
                assert row.error_code == ErrorCode.NONE
            return len(reads) - before

        return world.run(scenario())


def test_a_record_has_the_same_reads_however_many_partitions_wait() -> None:
    """With 300 partitions the followers' fetches read as many as with three."""
    assert 0 < reads_for_records(_MANY) == reads_for_records(_FEW) <= _RECORDS


def test_a_wake_up_that_reads_all_partitions_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the loops of brokers with thousands of partitions stood still for seconds."""
    note = FollowerFetch.note

    def note_all(self: FollowerFetch, changed: Watched) -> None:
        for partition in self.context.broker.replicas.partitions():
            note(self, partition)

    monkeypatch.setattr(FollowerFetch, "note", note_all)
    assert reads_for_records(_MANY) > 10 * reads_for_records(_FEW)
