"""Layer 6: for tests — an embedded cluster, the pytest plugin, the simulation, history checkers.

    from ottla.testing import Cluster

    with Cluster() as cluster:
        settings = {"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random"}
        producer = confluent_kafka.Producer(settings)

`Cluster` is imported on first access. pytest loads the plugin in every project that has Ottla
installed, and a test run that does not use the broker must not spend time on its import.
"""

from typing import TYPE_CHECKING, Any

from ottla.base.loading import load

if TYPE_CHECKING:
    from ottla.testing.cluster import Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    if name == "Cluster":
        return load("ottla.testing.cluster", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
