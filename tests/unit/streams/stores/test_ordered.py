"""The ordered map of bytes behaves like a sorted dictionary, and segments expire."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.stores.ordered import MemoryBytes, Segments

KEYS = st.binary(max_size=2)
WRITES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=1)), st.booleans()))


@given(WRITES, KEYS, KEYS)
def test_a_scan_returns_a_sorted_dictionary(
    writes: list[tuple[bytes, bytes | None, bool]], low: bytes, high: bytes
) -> None:
    """Puts, removals and scans may come in any order."""
    held, model = MemoryBytes(), {}
    for key, value, walks in writes:
        held.put(key, value)
        model[key] = value
        if walks:
            list(held.scan())
    expected = sorted((key, value) for key, value in model.items() if value is not None)
    assert list(held.scan()) == expected
    assert list(held.scan(reverse=True)) == expected[::-1]
    assert list(held.scan(low, high)) == [each for each in expected if low <= each[0] <= high]
    assert len(held) == len(expected)


def test_expired_entries_are_not_visible() -> None:
    """Time is the latest put; the edge of the retention is visible only with `edge_is_seen`."""
    for edge_is_seen, first in ((False, 91), (True, 90)):
        segments = Segments(10, edge_is_seen=edge_is_seen)
        assert segments.put(100, b"new", b"1")
        assert segments.put(90, b"old", b"2")
        assert segments.first_visible == first
        assert (segments.get(90, b"old") == b"2") is edge_is_seen


def test_an_expired_segment_is_dropped() -> None:
    """Segments cover at least a minute; a put into an expired segment is rejected."""
    segments = Segments(60_000)
    segments.put(0, b"a", b"1")
    segments.put(200_000, b"b", b"2")
    assert segments.between(0, 200_000, reverse=False)[0].get(b"b") == b"2"
    assert not segments.put(10, b"c", b"3")


@given(
    st.lists(st.tuples(st.integers(0, 400_000), st.sampled_from((b"a", b"b", b"c")), st.booleans()))
)
def test_an_index_by_time_equals_a_scan(writes: list[tuple[int, bytes, bool]]) -> None:
    """The results are equal for any time range, also after removals and dropped segments."""
    plain, indexed = (Segments(150_000, by_time=by_time) for by_time in (False, True))
    for time, name, is_removed in writes:
        key = name + time.to_bytes(8, "big")
        for store in (plain, indexed):
            store.put(time, key, None if is_removed else b"v")
    low, high = 100_000, 300_000
    walked = [(key, value) for key, value in plain.in_time(low, high)]
    expected = [entry for entry in walked if low <= int.from_bytes(entry[0][1:], "big") <= high]
    assert sorted(indexed.in_time(low, high)) == sorted(expected)
    assert indexed.remember() == plain.remember()


@given(WRITES)
def test_the_first_key_is_removed_repeatedly(
    writes: list[tuple[bytes, bytes | None, bool]],
) -> None:
    """Keys are returned in order, also after other removals."""
    held, model = MemoryBytes(), {}
    for key, value, takes in writes:
        held.put(key, value)
        model[key] = value
        if takes:
            first_entry = held.first()
            there = sorted(entry for entry in model.items() if entry[1] is not None)
            assert first_entry == (there[0] if there else None)
            if first_entry is not None:
                held.put(first_entry[0], None)
                model[first_entry[0]] = None
    there = sorted(entry for entry in model.items() if entry[1] is not None)
    assert list(held.walk()) == there
    held.clear()
    assert held.first() is None
