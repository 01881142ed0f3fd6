"""Where more waits than a micro-batch takes, the oldest goes first, whatever topic it is in."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.spark.connector.ranges import Offsets
from ottla.streams.spark.connector.time_order import TimeOrder

KEYS = [("a", 0), ("a", 1), ("b", 0)]
NOW_MS = 1_700_000_000_000
_HOUR_MS = 3_600_000


class Topics:
    """The times of what partitions hold, at offsets from 0 on; and a reader that works it off."""

    def __init__(self, times: list[list[int]]) -> None:
        self.times = dict(zip(KEYS, times, strict=True))
        self.probes = 0

    def at(self, time_ms: int) -> Offsets:
        """Find as a broker does: the first record of that time or later."""
        self.probes += 1
        return {
            key: next((offset for offset, each in enumerate(own) if each >= time_ms), -1)
            for key, own in self.times.items()
        }

    def batches(self, max_rows: int) -> list[list[int]]:
        """Return the times of each micro-batch; it moves each time, and ends."""
        order = TimeOrder()
        position = dict.fromkeys(KEYS, 0)
        end = {key: len(own) for key, own in self.times.items()}
        found = []
        while position != end:
            ends = order.limit(position, end, max_rows, NOW_MS, self.at)
            assert all(position[key] <= ends[key] <= end[key] for key in KEYS)
            assert ends != position
            found.append(
                [time for key in KEYS for time in self.times[key][position[key] : ends[key]]]
            )
            assert len(found[-1]) <= max_rows + len(KEYS)
            position = ends
        return found


ago = st.integers(0, 50).map(lambda number: NOW_MS - 7 * _HOUR_MS + number * 1000)
partitions = st.lists(st.lists(ago, max_size=40), min_size=3, max_size=3)


@given(partitions, st.integers(1, 60))
def test_no_record_comes_before_one_that_is_older(times: list[list[int]], rows: int) -> None:
    """From micro-batch to micro-batch; inside one they are sorted later."""
    batches = Topics([sorted(each) for each in times]).batches(rows)
    for earlier, later in itertools.pairwise(batches):
        assert max(earlier) <= min(later)


@given(partitions, st.integers(1, 60))
def test_records_out_of_order_are_all_read(times: list[list[int]], rows: int) -> None:
    """Each once: every micro-batch has some."""
    batches = Topics(times).batches(rows)
    assert sorted(itertools.chain(*batches)) == sorted(itertools.chain(*times))


def test_what_has_one_time_is_shared() -> None:
    """There is no order in it."""
    assert [len(each) for each in Topics([[NOW_MS] * 40] * 3).batches(60)] == [60, 60]


def test_a_record_of_the_future_holds_nobody_up() -> None:
    """Behind it nothing can be found by time, so that each partition gets its share."""
    future = [NOW_MS + 100 * _HOUR_MS, *[NOW_MS - 5] * 39]
    batches = Topics([future, [NOW_MS - 9] * 40, [NOW_MS - 9] * 40]).batches(60)
    assert NOW_MS - 5 in batches[0]
    assert sorted(itertools.chain(*batches)) == sorted([*future, *[NOW_MS - 9] * 80])


def test_little_that_waits_is_not_asked_about() -> None:
    """Only a micro-batch that is full costs questions, and few."""
    few = Topics([[NOW_MS - 3], [NOW_MS - 2], [NOW_MS - 1]])
    assert [len(each) for each in few.batches(3)] == [3]
    assert few.probes == 0
    many = Topics([[NOW_MS - _HOUR_MS + n for n in range(400)]] * 3)
    assert max(len(each) for each in many.batches(300)) <= 300
    assert many.probes < 50 * 8
