"""Ottla answers as Apache Kafka did when it was recorded, except where the transcript says why not."""

import pytest

from tests.compat.recorded import ours, transcript
from tests.compat.recorded.record import FOLDER

SUBJECTS = sorted(path.stem for path in FOLDER.glob("*.txt"))


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_answers_are_those_of_kafka(subject: str) -> None:
    """Every exchange of the transcript, replayed."""
    script = transcript.read(FOLDER / f"{subject}.txt")
    found = ours.differences(script, ours.play_to_ottla(script))
    if found:
        pytest.fail("\n".join(found), pytrace=False)
