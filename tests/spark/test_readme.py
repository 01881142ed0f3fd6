"""The Spark example of README.md runs as shown, except for the address of the broker."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.testing import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.alone]

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_example_of_the_readme_shows_the_records_of_a_topic() -> None:
    """The frame has the value of each record, without further options."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if "ottla_spark." in block]
    with Cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("greetings", b"hello world")
        assert producer.flush(10) == 0
        done = subprocess.run(
            [sys.executable, "-c", block.replace("127.0.0.1:9092", cluster.bootstrap)],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    # Spark shows bytes in hexadecimal digits.
    assert "68 65 6C 6C 6F" in done.stdout
