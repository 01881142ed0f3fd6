"""The client side: talks to any Kafka-compatible cluster and imports nothing of the broker.

`admin/` reads and changes topics, groups, offsets and configuration with our own codec,
`transport.py` produces and consumes with librdkafka, `fetcher.py`, `sender.py` and `table.py` move
records as Arrow columns. Importing this package imports none of them: `read_table`, and pyarrow
with it, is imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.table import read_table

__all__ = ["read_table"]


def __getattr__(name: str) -> Any:
    """Import a name on first use (PEP 562): pyarrow is an extra and takes 0.3 s to load."""
    if name in __all__:
        return getattr(importlib.import_module("ottla.client.table"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
