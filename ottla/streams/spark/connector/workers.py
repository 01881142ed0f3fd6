"""Makes Spark's Python workers faster between tasks.

Spark keeps its workers, and makes each of them collect garbage after every task
(`pyspark/daemon.py`). With Arrow, pandas and Ottla in memory the collector visits 100 000 objects,
none of which is garbage: 50 ms of a core for each task of each stage, and for the processes that
plan and commit a micro-batch as well.
"""

import functools
import gc
import sys

_WORKER = "pyspark.daemon"


def freeze_objects() -> None:
    """Exclude all current objects from garbage collection, if this process is a worker of Spark."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == _WORKER:
        gc.freeze()


@functools.cache
def freeze_objects_after_first_task() -> None:
    """Call `freeze_objects` once, after the first task, which imports pandas for values in Arrow."""
    freeze_objects()
