"""All scenarios with parameters, by name, as listed in Shapes.register."""

from collections.abc import Callable

from ottla.streams import StreamsBuilder, Topology
from tests.streams.recorded.chain import build_chain
from tests.streams.recorded.commands import build_commands
from tests.streams.recorded.shapes import SHAPES, ScenarioParameters

SHAPED: dict[str, Callable[[StreamsBuilder, ScenarioParameters], None]] = {
    **SHAPES,
    "chain": build_chain,
    "commands": build_commands,
}


def build_shaped(name: str, parameters: ScenarioParameters) -> Topology:
    """Return the topology of a name with parameters."""
    builder = StreamsBuilder()
    SHAPED[name](builder, parameters)
    return builder.build()
