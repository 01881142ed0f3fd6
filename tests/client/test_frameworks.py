"""Programs of frameworks on top of Kafka clients run unchanged, in environments of their own.

Not done: Quix Streams, Karapace; in Java Connect, MirrorMaker 2, Flink, Spring Kafka, Debezium.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import Cluster

_PROGRAMS = Path(__file__).with_name("frameworks")
_FASTSTREAM = "faststream[kafka]==0.7.8"
_COUNT = 200


def environment(folder: Path, *packages: str) -> str:
    """Return the Python of a new environment with these packages."""
    uv = [sys.executable, "-m", "uv"]
    python = folder / "bin" / "python"
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    command = [*uv, "pip", "install", "-q", "--python", str(python), *packages]
    installed = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert installed.returncode == 0, installed.stderr
    return str(python)


@pytest.mark.compat
@pytest.mark.nightly(
    "tests/compat/test_python_clients.py::test_every_client_reads_records_of_every_other"
)
def test_faststream_answers_each_order(tmp_path: Path) -> None:
    """Two groups and a publisher of FastStream's broker for aiokafka lose no record."""
    python = environment(tmp_path / "environment", _FASTSTREAM)
    with Cluster(options={"num.partitions": 3}) as cluster:
        run = subprocess.run(
            [python, str(_PROGRAMS / "faststream_orders.py"), cluster.bootstrap, str(_COUNT)],
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert run.stdout.splitlines()[-1:] == [str(_COUNT)], run.stderr
        assert len(cluster.records("parcels")) == _COUNT
        assert cluster.wait_for_group("shop", members=0, is_caught_up=True).state == "Empty"
