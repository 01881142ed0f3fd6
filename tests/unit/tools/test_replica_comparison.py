"""The comparison of two replicas: pure, without brokers."""

from typing import cast

from ottla.tools.replica.comparing import ComparisonRules, Finding, compare
from ottla.tools.replica.reading import Content, Replica, split
from ottla.wire.records.records import Record, encode_batch

EXACT = ComparisonRules(is_compacted=False, wait_s=0)
COMPACTED = ComparisonRules(is_compacted=True, wait_s=0)


class FakeReplica:
    """A replica whose content is in memory; a response has at most two batches."""

    def __init__(self, broker: int, *batches: tuple[int, bytes], high_watermark: int = 4) -> None:
        self.broker = broker
        self._high_watermark = high_watermark
        self._batches = split(
            b"".join(
                encode_batch([Record(None, value, (), 1000)], base_offset=offset)
                for offset, value in batches
            )
        )

    def read(self, offset: int) -> Content:
        """Return the batches from an offset on."""
        batches = [item for item in self._batches if item.last_offset >= offset]
        return Content(0, self._high_watermark, batches[:2])


def result(leader: FakeReplica, follower: FakeReplica, rules: ComparisonRules) -> Finding | None:
    """Compare the offsets 0 to 4."""
    counted: list[int] = []
    pair = cast(Replica, leader), cast(Replica, follower)
    differences = compare(*pair, (0, 4), rules, counted.append)
    assert sum(counted) <= 4
    return differences


def test_replica_that_lacks_records_is_found() -> None:
    """A missing batch is reported at the end of what the follower has."""
    leader = FakeReplica(1, (0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"))
    assert result(leader, FakeReplica(2, (0, b"a"), (1, b"b")), EXACT) == Finding(
        2, 2, "lacks records that the leader has"
    )
    assert result(FakeReplica(1, (0, b"a")), FakeReplica(2, (0, b"a"), (1, b"b")), EXACT) == (
        Finding(2, 1, "has records that the leader lacks")
    )


def test_replica_below_the_high_watermark_is_behind() -> None:
    """The finding names the offset that it has reached."""
    behind = FakeReplica(2, (0, b"a"), high_watermark=1)
    actual = result(FakeReplica(1, (0, b"a"), (1, b"b")), behind, EXACT)
    assert actual is not None
    assert (actual.offset, "is behind" in actual.problem) == (1, True)


def test_records_that_only_one_replica_has_compacted_are_no_difference() -> None:
    """Replicas of a compacted topic are cleaned at different times."""
    whole = FakeReplica(1, (0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"))
    cleaned = FakeReplica(2, (1, b"b"), (3, b"d"))
    assert result(whole, cleaned, COMPACTED) is None
    assert result(cleaned, whole, COMPACTED) is None
    assert result(whole, cleaned, EXACT) is not None


def test_conflict_is_found_in_a_compacted_topic() -> None:
    """The same offset with another value is a difference."""
    leader = FakeReplica(1, (0, b"a"), (1, b"b"), (3, b"d"))
    actual = result(leader, FakeReplica(2, (1, b"b"), (3, b"X")), COMPACTED)
    assert actual == Finding(2, 3, "differs from the leader: the batches have other bytes")
