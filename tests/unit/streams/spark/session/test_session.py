"""Which masters are clusters, and which of them the loopback reaches."""

import pytest

from ottla.streams.spark.session.session import is_cluster, is_here


@pytest.mark.parametrize("master", ["", "local", "local[*]", "local[2,4]"])
def test_a_local_master_has_no_executors_of_its_own(master: str) -> None:
    """All is one process on this machine."""
    assert not is_cluster(master)
    assert is_here(master)


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://127.0.0.1:7077"])
def test_a_cluster_may_be_on_this_machine(master: str) -> None:
    """Executors are sent the package; the driver stays on the loopback."""
    assert is_cluster(master)
    assert is_here(master)


@pytest.mark.parametrize("master", ["spark://hq:7077", "spark://127.0.0.1:1,hq:2", "yarn"])
def test_executors_elsewhere_must_reach_the_driver(master: str) -> None:
    """Its address is Spark's own choice: nobody reaches another machine's loopback."""
    assert is_cluster(master)
    assert not is_here(master)
