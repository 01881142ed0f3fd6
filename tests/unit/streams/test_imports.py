"""Whoever builds and tests topologies needs neither Spark nor the time that it takes to import."""

import subprocess
import sys

_WITHOUT_SPARK = """
import sys
for name in ("pyspark", "pandas", "numpy", "pyarrow"):
    sys.modules[name] = None
from ottla.streams import *
builder = StreamsBuilder()
builder.stream("in").group_by_key().count("counts").to_stream().to("out")
with TopologyTestDriver(builder.build()) as driver:
    driver.create_input_topic("in").pipe_input("a", 1)
    print(driver.store("counts").get("a"))
"""


def test_everything_but_what_runs_on_spark_is_imported_without_it() -> None:
    """With a star as well."""
    command = [sys.executable, "-c", _WITHOUT_SPARK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")
