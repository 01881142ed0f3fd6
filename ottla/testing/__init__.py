"""Floor 5: what tests need — an embedded cluster, the pytest plugin, the simulated world, checkers.

    from ottla.testing import Cluster

    with Cluster() as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap})

`Cluster` is imported when it is asked for: pytest loads the plugin in every run of every project that
has Ottla installed, and must not pay for a broker that nobody uses.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.cluster import Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    if name == "Cluster":
        return importlib.import_module("ottla.testing.cluster").Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
