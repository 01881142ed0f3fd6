"""The client library, `read_table` and the test driver of streams need nothing that Windows lacks.

Not covered: sockets and files of Windows itself, and Spark.
"""

import subprocess
import sys

import pytest

from ottla.testing import Cluster
from tests.law import source

_HIDDEN = "from tests.portable.windows import hide\nhide()\n"
_CLIENTS = """
import sys
import ottla.client as client
from ottla.client import Consumer, Producer
for name in client.__all__:
    getattr(client, name)
with Producer(bootstrap_servers=sys.argv[1]) as producer:
    producer.send("t", b"v", key=b"k").result(30)
with Consumer("t", bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest") as c:
    records = []
    while not records:
        records = c.poll(10)
print(records[0].value, client.read_table("t", bootstrap=sys.argv[1]).num_rows)
"""
_STREAMS = """
import ottla.streams as streams
for name in streams.__all__:
    getattr(streams, name)
from ottla.streams import StreamsBuilder, TopologyTestDriver
builder = StreamsBuilder()
builder.stream("in").map_values(lambda value: value.upper()).to("out")
with TopologyTestDriver(builder.build()) as driver:
    driver.create_input_topic("in").pipe_input("k", "v")
    print(driver.create_output_topic("out").read_value())
"""


def _python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=source.ROOT,
        timeout=60,
        check=False,
    )


def test_clients_work_without_the_modules_of_unix() -> None:
    """A program produces, consumes and reads a table."""
    with Cluster() as cluster:
        done = _python(_HIDDEN + _CLIENTS, cluster.bootstrap)
    assert done.stdout.split() == ["b'v'", "1"], done.stderr


def test_the_test_driver_works_without_the_modules_of_unix() -> None:
    """A topology runs in the test driver."""
    done = _python(_HIDDEN + _STREAMS)
    assert done.stdout.split() == ["V"], done.stderr


def test_the_command_names_wsl_and_docker_on_windows() -> None:
    """One sentence with the commands to run, and exit code 1."""
    done = _python("import sys; sys.platform = 'win32'\nimport ottla.__main__ as m; m.main()")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "`wsl --install`" in line
    assert "`docker run" in line


@pytest.mark.parametrize("module", ["fcntl", "resource"])
def test_the_mode_hides_modules(module: str) -> None:
    """Without this, the other tests would prove nothing."""
    done = _python(f"{_HIDDEN}import {module}")
    assert "ModuleNotFoundError" in done.stderr
