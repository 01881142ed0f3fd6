"""Building and testing topologies requires neither Spark nor the time to import it."""

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


def test_everything_except_spark_is_imported_without_it() -> None:
    """This includes an import with a star."""
    command = [sys.executable, "-c", _WITHOUT_SPARK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_package_of_spark_that_is_missing_is_named_with_its_remedy() -> None:
    """The last line of the traceback has a command that can be copied."""
    line = 'import sys; sys.modules["pyarrow"] = None; from ottla.streams import spark'
    command = [sys.executable, "-c", line]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: ottla.streams.spark needs pyarrow: pip install 'ottla[spark]'"
    )
