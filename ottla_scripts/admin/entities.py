"""The entity that `kafka-configs` shows or changes."""

from typing import NamedTuple


class Entities(NamedTuple):
    """The entity of a command: its types, and its names, empty for the default."""

    types: list[str]
    names: list[str]
