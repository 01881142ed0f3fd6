"""A log directory without room: what Ottla answers, and what Apache Kafka has answered.

`answers_of_full_disks.json` holds the answers by Kafka's version; the test with Java asks again. Needs
root, as a small disk is mounted.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.testing.process import BrokerProcess
from tests.compat import java
from tests.compat.failed_disk import Answers, answers
from tests.compat.recorded import peers
from tests.compat.recorded.player import Target
from tests.robustness.disks import FullDisk, failing_disk

pytestmark = pytest.mark.slow

RECORDED: dict[str, Answers] = json.loads(
    (Path(__file__).parent / "answers_of_full_disks.json").read_text()
)
# Kafka's indexes are mapped into memory, which a full disk ends with a signal.
OPTIONS = {
    "log.dirs": "2",
    "log.index.interval.bytes": "100000000",
    "log.index.size.max.bytes": "4096",
}


def as_text(found: Answers) -> Any:
    """Return answers as they come out of JSON."""
    return json.loads(json.dumps(found))


def test_ottla_answers_as_kafka_does(tmp_path: Path) -> None:
    """The partition that is gone, the one beside it, the directories, elections, new topics."""
    folder = tmp_path / "logs"
    folder.mkdir()
    with failing_disk(FullDisk, folder / "full") as disk:
        broker = BrokerProcess(f"{folder}/data,{disk.path}")
        broker.errors = tmp_path / "stderr"
        with broker:
            found = as_text(answers(Target("127.0.0.1", broker.port), disk.path))
    assert found == RECORDED["4.3.0"]


@pytest.mark.compat
@pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))
@pytest.mark.parametrize("version", RECORDED)
def test_kafka_still_answers_so(tmp_path: Path, version: str) -> None:
    """The same questions to Apache Kafka."""
    folder = tmp_path / "kafka"
    folder.mkdir()
    with (
        failing_disk(FullDisk, folder / "data1") as disk,
        peers.running(version, folder, OPTIONS) as target,
    ):
        found = as_text(answers(target, disk.path))
    assert found == RECORDED[version]
