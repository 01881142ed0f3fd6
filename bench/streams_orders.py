"""What a contender's program is asked to run, line by line."""

import json
import sys
from collections.abc import Callable
from typing import NamedTuple


class Order(NamedTuple):
    """A topology, the application that it is, and its topics."""

    topology: str
    application: str
    source: str
    table: str
    sink: str


def spelled(order: Order, separator: str = "") -> str:
    """Return an order as a line: as JSON, or as words with a separator between."""
    return separator.join(order) if separator else json.dumps(order._asdict())


def orders(run: Callable[[Order], None]) -> None:
    """Run each order of the standard input; `run` reads the line that ends it. Tells when it has ended."""
    for line in iter(sys.stdin.readline, ""):
        run(Order(**json.loads(line)))
        print("stopped", flush=True)
