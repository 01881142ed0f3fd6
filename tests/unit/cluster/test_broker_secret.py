"""The secret of a cluster in its coordination tree."""

from ottla.base.clock import RealClock
from ottla.base.rng import SeededRng
from ottla.cluster.broker_secret import SECRET_BYTES, ensure_broker_secret
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.testing.sim.files import SimFileSystem


async def test_all_brokers_of_a_cluster_have_the_secret_of_the_first() -> None:
    """A broker that starts later, or again, reads it."""
    tree = EmbeddedTree(SimFileSystem(), RealClock())
    first = await ensure_broker_secret(tree.session(), SeededRng(1))
    second = await ensure_broker_secret(tree.session(), SeededRng(2))
    assert first == second
    assert len(first) == SECRET_BYTES
    await tree.close()
