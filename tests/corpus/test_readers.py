"""Every reader shows what the log holds: each cell of the matrix."""

import pytest

from tests.corpus.judges import Reading
from tests.corpus.readers import READS
from tests.corpus.setting import Setting
from tests.corpus.table import READERS, cells

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("reader", "topic"), cells(READERS))
def test_readers_show_what_a_plain_consumer_reads(
    setting: Setting, oracle: dict[str, list[Reading]], reader: str, topic: str
) -> None:
    """The records of the topic, byte for byte, in the form of the reader."""
    found, expected = READS[reader](setting, topic, oracle[topic])
    assert found == expected
