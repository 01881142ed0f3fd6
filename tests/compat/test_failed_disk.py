"""A full log directory: the responses of Ottla and of Apache Kafka.

`answers_of_full_disks.json` has the responses by Kafka's version; the test with Java compares them
again. Needs root, because it mounts a small disk.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.testing.process import BrokerProcess
from tests.compat.failed_disk import Answers, answers
from tests.compat.recorded import peers
from tests.compat.recorded.player import Target
from tests.robustness.disks import FullDisk, failing_disk

pytestmark = pytest.mark.slow

RECORDED: dict[str, Answers] = json.loads(
    (Path(__file__).parent / "answers_of_full_disks.json").read_text()
)
# Kafka maps its indexes into memory, and a full disk ends that with a signal.
OPTIONS = {
    "log.dirs": "2",
    "log.index.interval.bytes": "100000000",
    "log.index.size.max.bytes": "4096",
}


def as_text(responses: Answers) -> Any:
    """Return responses as JSON returns them."""
    return json.loads(json.dumps(responses))


@pytest.mark.needs("mount")
def test_ottla_responds_as_kafka_does(tmp_path: Path) -> None:
    """Responses agree for the failed partition, another one, the directories, elections and new
    topics.
    """
    folder = tmp_path / "logs"
    folder.mkdir()
    with failing_disk(FullDisk, folder / "full") as disk:
        broker = BrokerProcess(f"{folder}/data,{disk.path}")
        broker.errors = tmp_path / "stderr"
        with broker:
            actual = as_text(answers(Target("127.0.0.1", broker.port), disk.path))
    assert actual == RECORDED["4.3.0"]


@pytest.mark.compat
@pytest.mark.needs("java", "mount")
@pytest.mark.nightly("tests/compat/test_failed_disk.py::test_ottla_responds_as_kafka_does")
@pytest.mark.parametrize("version", RECORDED)
def test_kafka_still_has_recorded_responses(tmp_path: Path, version: str) -> None:
    """Apache Kafka still has the recorded responses."""
    folder = tmp_path / "kafka"
    folder.mkdir()
    with (
        failing_disk(FullDisk, folder / "data1") as disk,
        peers.running(version, folder, OPTIONS) as target,
    ):
        actual = as_text(answers(target, disk.path))
    assert actual == RECORDED[version]
