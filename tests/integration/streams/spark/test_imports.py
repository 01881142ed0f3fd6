"""The imports of the processes that Spark starts, of which there are six besides the workers."""

import subprocess
import sys

PROGRAM = """
import sys
import ottla.streams.spark.stages.topology_source, ottla.streams.spark.connector.source
print("pandas" in sys.modules)
"""


def test_planning_a_micro_batch_does_not_import_pandas() -> None:
    """The import takes long, and only stages with state pass data frames to Spark."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
