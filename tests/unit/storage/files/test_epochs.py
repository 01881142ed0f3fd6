"""The leader epochs of a log (KIP-101)."""

import pytest

from ottla.storage.files.epochs import LeaderEpochs


def make_epochs() -> LeaderEpochs:
    """Return epochs 1, 3 and 4, which begin at 10, 20 and 40."""
    return LeaderEpochs([(1, 10), (3, 20), (4, 40)])


def test_a_new_epoch_begins_at_its_offset() -> None:
    """A new epoch becomes the latest, and the checkpoint has to be written."""
    epochs = make_epochs()
    assert not epochs.is_dirty
    epochs.assign(6, 50)
    assert epochs.entries[-1] == (6, 50)
    assert epochs.latest == 6
    assert epochs.is_dirty


def test_the_same_epoch_later_changes_nothing() -> None:
    """An epoch keeps its first start offset."""
    epochs = make_epochs()
    epochs.assign(4, 45)
    assert epochs.entries == make_epochs().entries
    assert not epochs.is_dirty


@pytest.mark.parametrize(
    ("epoch", "offset", "entries"),
    [
        (5, 30, [(1, 10), (3, 20), (5, 30)]),
        (5, 40, [(1, 10), (3, 20), (5, 40)]),
        (3, 60, [(1, 10), (3, 60)]),
        (0, 0, [(0, 0)]),
    ],
)
def test_entries_that_contradict_a_new_epoch_are_removed(
    epoch: int, offset: int, entries: list[tuple[int, int]]
) -> None:
    """A new epoch removes entries with a later epoch or offset."""
    epochs = make_epochs()
    epochs.assign(epoch, offset)
    assert epochs.entries == entries


@pytest.mark.parametrize(
    ("asked", "response"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),
        (1, (1, 20)),
        (2, (1, 20)),
        (3, (3, 40)),
        (4, (4, 99)),
        (5, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked: int, response: tuple[int, int]) -> None:
    """The latest epoch ends at the log end; newer ones are unknown (KIP-101)."""
    assert make_epochs().end_offset_for(asked, 99) == response


def test_log_without_epochs_has_no_epoch_ends() -> None:
    """Every lookup in a log without epochs is undefined."""
    assert LeaderEpochs().end_offset_for(0, 99) == (-1, -1)


@pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 1), (19, 1), (20, 3), (999, 4)])
def test_an_offset_belongs_to_the_epoch_that_began_before_it(offset: int, epoch: int) -> None:
    """An offset before the first epoch belongs to none."""
    assert make_epochs().epoch_of(offset) == epoch


@pytest.mark.parametrize(
    ("end", "entries"),
    [
        (41, [(1, 10), (3, 20), (4, 40)]),
        (40, [(1, 10), (3, 20)]),
        (11, [(1, 10)]),
        (0, []),
    ],
)
def test_truncation_at_the_end_removes_epochs_that_begin_there(
    end: int, entries: list[tuple[int, int]]
) -> None:
    """The epoch before the removed ones becomes the latest."""
    epochs = make_epochs()
    epochs.truncate_from_end(end)
    assert epochs.entries == entries
    assert epochs.is_dirty == (len(entries) < 3)
    assert epochs.latest == (entries[-1][0] if entries else -1)


@pytest.mark.parametrize(
    ("start", "entries"),
    [
        (0, [(1, 10), (3, 20), (4, 40)]),
        (10, [(1, 10), (3, 20), (4, 40)]),
        (15, [(1, 15), (3, 20), (4, 40)]),
        (20, [(3, 20), (4, 40)]),
        (90, [(4, 90)]),
    ],
)
def test_truncation_at_the_start_keeps_the_epoch_of_the_new_start(
    start: int, entries: list[tuple[int, int]]
) -> None:
    """The epoch of the new start offset begins there."""
    epochs = make_epochs()
    epochs.truncate_from_start(start)
    assert epochs.entries == entries
    assert epochs.is_dirty == (entries != make_epochs().entries)


def test_clear_removes_all_epochs() -> None:
    """A log that restarts at another offset has no epochs."""
    epochs = make_epochs()
    epochs.clear()
    assert (epochs.entries, epochs.latest, epochs.is_dirty) == ([], -1, True)
