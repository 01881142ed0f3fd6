"""If more records wait than fit into a micro-batch, the oldest of all topics are read first."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.spark.connector.ranges import Offsets
from ottla.streams.spark.connector.time_order import TimeOrder

KEYS = [("a", 0), ("a", 1), ("b", 0)]
NOW_MS = 1_700_000_000_000
_HOUR_MS = 3_600_000


class Topics:
    """The times of the records in partitions, from offset 0, and a reader that consumes them."""

    def __init__(self, times: list[list[int]]) -> None:
        self.times = dict(zip(KEYS, times, strict=True))
        self.probes = 0

    def at(self, time_ms: int) -> Offsets:
        """Find the first record of that time or later, as a broker does."""
        self.probes += 1
        return {
            key: next((offset for offset, each in enumerate(own) if each >= time_ms), -1)
            for key, own in self.times.items()
        }

    def batches(self, max_rows: int) -> list[list[int]]:
        """Return the times of each micro-batch; every batch makes progress."""
        order = TimeOrder()
        position = dict.fromkeys(KEYS, 0)
        end = {key: len(own) for key, own in self.times.items()}
        values = []
        while position != end:
            ends = order.limit(position, end, max_rows, NOW_MS, self.at)
            assert all(position[key] <= ends[key] <= end[key] for key in KEYS)
            assert ends != position
            values.append(
                [time for key in KEYS for time in self.times[key][position[key] : ends[key]]]
            )
            assert len(values[-1]) <= max_rows + len(KEYS)
            position = ends
        return values


ago = st.integers(0, 50).map(lambda number: NOW_MS - 7 * _HOUR_MS + number * 1000)
partitions = st.lists(st.lists(ago, max_size=40), min_size=3, max_size=3)


@given(partitions, st.integers(1, 60))
def test_older_records_are_in_earlier_batches(times: list[list[int]], rows: int) -> None:
    """Records within a micro-batch are sorted later."""
    batches = Topics([sorted(time_) for time_ in times]).batches(rows)
    for earlier, later in itertools.pairwise(batches):
        assert max(earlier) <= min(later)


@given(partitions, st.integers(1, 60))
def test_unordered_records_are_all_read(times: list[list[int]], rows: int) -> None:
    """Each is read once, and no micro-batch is empty."""
    batches = Topics(times).batches(rows)
    assert sorted(itertools.chain(*batches)) == sorted(itertools.chain(*times))


def test_records_with_equal_times_are_shared() -> None:
    """Their partitions advance equally."""
    assert [len(batch) for batch in Topics([[NOW_MS] * 40] * 3).batches(60)] == [60, 60]


def test_a_record_of_the_future_blocks_no_partition() -> None:
    """Records after it cannot be found by time, so each partition gets its share."""
    future = [NOW_MS + 100 * _HOUR_MS, *[NOW_MS - 5] * 39]
    batches = Topics([future, [NOW_MS - 9] * 40, [NOW_MS - 9] * 40]).batches(60)
    assert NOW_MS - 5 in batches[0]
    assert sorted(itertools.chain(*batches)) == sorted([*future, *[NOW_MS - 9] * 80])


def test_few_waiting_records_need_no_requests() -> None:
    """Only a full micro-batch needs requests to the broker, and only a few."""
    few = Topics([[NOW_MS - 3], [NOW_MS - 2], [NOW_MS - 1]])
    assert [len(batch) for batch in few.batches(3)] == [3]
    assert few.probes == 0
    many = Topics([[NOW_MS - _HOUR_MS + n for n in range(400)]] * 3)
    assert max(len(batch) for batch in many.batches(300)) <= 300
    assert many.probes < 50 * 8
