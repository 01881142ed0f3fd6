"""What Spark's Python workers need to be quick between tasks.

Spark keeps its workers, and has each collect garbage after every task (`pyspark/daemon.py`). With Arrow, pandas and
Ottla in memory that is a walk over 100 000 objects, none of which is garbage: 50 ms of a core for each task of each
stage, and for the processes that plan and commit a micro-batch as well.
"""

import functools
import gc
import sys

_WORKER = "pyspark.daemon"


def settle() -> None:
    """In a worker that Spark keeps, leave what is in memory now out of its collections; elsewhere do nothing."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == _WORKER:
        gc.freeze()


@functools.cache
def settle_after_work() -> None:
    """Do so again, once, at the end of a first task: the first values that Arrow is given have it import pandas."""
    settle()
