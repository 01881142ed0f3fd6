"""A real broker on a simulated machine: the machine's clock, randomness, disk and network."""

from collections.abc import Mapping
from typing import Any

from ottla.server.node import Node
from ottla.testing.sim.world import Machine


def node_on(machine: Machine, settings: Mapping[str, str], tree: Any = None) -> Node:
    """Return a broker that is not started; `tree` is its access to the ensemble of a cluster."""
    return Node(
        settings,
        clock=machine.clock,
        rng=machine.rng(),
        files=machine.files,
        net=machine.net,
        tree=tree,
    )
