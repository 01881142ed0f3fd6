"""The orders that a contender's program reads from its standard input, line by line."""

import json
import sys
from collections.abc import Callable
from typing import NamedTuple


class Order(NamedTuple):
    """A topology, its application id, and its topics."""

    topology: str
    application: str
    source: str
    table: str
    sink: str


def spelled(order: Order, separator: str = "") -> str:
    """Return an order as a line: as JSON, or as words with a separator."""
    return separator.join(order) if separator else json.dumps(order._asdict())


def orders(run: Callable[[Order], None]) -> None:
    """Run each order of the standard input; `run` reads the line that ends it. Prints a line after
    each.
    """
    for line in iter(sys.stdin.readline, ""):
        run(Order(**json.loads(line)))
        print("stopped", flush=True)
