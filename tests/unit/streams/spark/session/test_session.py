"""The masters that are clusters, and those that run on this machine."""

import pytest

from ottla.streams.spark.session.session import is_cluster, is_here


@pytest.mark.parametrize("master", ["", "local", "local[*]", "local[2,4]"])
def test_a_local_master_has_no_executors(master: str) -> None:
    """Everything runs in one process on this machine."""
    assert not is_cluster(master)
    assert is_here(master)


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://127.0.0.1:7077"])
def test_a_cluster_can_be_on_this_machine(master: str) -> None:
    """Executors receive the package; the driver listens on the loopback interface."""
    assert is_cluster(master)
    assert is_here(master)


@pytest.mark.parametrize("master", ["spark://hq:7077", "spark://127.0.0.1:1,hq:2", "yarn"])
def test_remote_executors_must_reach_the_driver(master: str) -> None:
    """Spark selects the driver's address, because the loopback interface is local."""
    assert is_cluster(master)
    assert not is_here(master)
