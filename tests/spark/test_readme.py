"""The Spark example of README.md runs as shown, except for the address of the broker."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.testing import Cluster
from tests.spark.programs import Run

pytestmark = [pytest.mark.slow, pytest.mark.alone]

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_example_of_the_readme_shows_the_records_of_a_topic(
    run_program: Run, tmp_path: Path
) -> None:
    """The frame has the value of each record, without further options."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if "ottla_spark." in block]
    with Cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("greetings", b"hello world")
        assert producer.flush(10) == 0
        text = block.replace("127.0.0.1:9092", cluster.bootstrap)
        (tmp_path / "example.py").write_text(text, encoding="utf-8")
        # Spark shows bytes in hexadecimal digits.
        assert "68 65 6C 6C 6F" in run_program("example.py", folder=tmp_path)
