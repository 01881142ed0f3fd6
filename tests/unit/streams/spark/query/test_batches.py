"""The batches of checkpoints and targets."""

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.spark.query.batches import CheckpointBatches


@pytest.mark.parametrize(
    ("committed", "written", "has_all"),
    [(-1, -1, True), (4, 4, True), (4, 5, True), (4, -1, False), (4, 2, False)],
)
def test_targets_that_fit_their_checkpoint(committed: int, written: int, has_all: bool) -> None:
    """The planned batch may be in the target already; only some targets have every batch."""
    batches = CheckpointBatches("c", "q", planned=committed + 1, committed=committed)
    batches.compare("Sink a", "the folder", written, has_all=has_all)


@pytest.mark.parametrize(
    ("written", "words"),
    [(6, "already has batch 6, but the checkpoint c ends at batch 5"), (2, "batches 3 to 4")],
)
def test_targets_of_another_time(written: int, words: str) -> None:
    """The error names the target, the batches and the remedy."""
    batches = CheckpointBatches("c", "q", planned=5, committed=4)
    with pytest.raises(ConfigError, match=f"Sink a: the folder .*{words}.*start with a new"):
        batches.compare("Sink a", "the folder", written, has_all=True)


def test_new_checkpoint() -> None:
    """A checkpoint without a planned batch is new, even if Spark has begun it."""
    assert CheckpointBatches("c", "q").is_new
    assert not CheckpointBatches("c", "q", planned=0).is_new
