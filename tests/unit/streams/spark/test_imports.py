"""What the processes that Spark starts have to import: there are six beside the workers."""

import subprocess
import sys

PROGRAM = """
import sys
import ottla.streams.spark.stages.topology_source, ottla.streams.spark.connector.source
print("pandas" in sys.modules)
"""


def test_who_plans_a_micro_batch_does_not_import_pandas() -> None:
    """It takes longer than all the rest, and only stages with state hand data frames to Spark."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
