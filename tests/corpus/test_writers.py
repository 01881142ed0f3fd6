"""Every writer and copy keeps what it is given: each cell of the matrix."""

import re
from pathlib import Path

import pytest

from ottla.client.admin.topics import describe_topic
from tests.corpus.judges import Reading, read_with_librdkafka
from tests.corpus.setting import Setting
from tests.corpus.table import WRITERS, cells
from tests.corpus.writers import WRITES

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("writer", "topic"), cells(WRITERS))
def test_writers_keep_what_they_are_given(
    setting: Setting,
    oracle: dict[str, list[Reading]],
    writer: str,
    topic: str,
    tmp_path: Path,
) -> None:
    """A plain consumer reads the same records from the target, byte for byte."""
    target = re.sub(r"[^a-z]+", "-", f"{writer}-{topic}".lower())
    write, form = WRITES[writer]
    rows = write(setting, topic, target, oracle[topic], tmp_path)
    with setting.cluster.admin() as brokers:
        count = len(describe_topic(brokers, target).partitions)
    found = read_with_librdkafka(setting.cluster.bootstrap, target, range(count))
    if writer.endswith("exactly-once"):
        chosen = {row.key for row in rows}
        found = [row for row in found if row.timestamp in {r.timestamp for r in rows}]
        assert chosen == {row.key for row in found}
    assert list(map(form, found)) == list(map(form, rows))
