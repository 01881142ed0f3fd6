"""The client world: talk to any Kafka-compatible cluster; knows nothing of how a broker works inside.

`admin/` asks and changes (topics, groups, offsets, configuration) over our own codec, `transport.py` is
librdkafka for producing and consuming, `fetcher.py`, `sender.py` and `table.py` move records as Arrow columns.
Importing this package imports none of them: `read_table` comes, with pyarrow, when it is first named.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.table import read_table

__all__ = ["read_table"]


def __getattr__(name: str) -> Any:
    """Import what is named on first use (PEP 562): pyarrow is an extra, and takes 0.3 s to load."""
    if name in __all__:
        return getattr(importlib.import_module("ottla.client.table"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
