"""Maps of pages behave like sorted dictionaries that persist between micro-batches."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.spark.stages import pages
from ottla.streams.spark.stages.pages import PagedMaps, Sizes

KEYS = st.binary(max_size=2)
VALUES = st.one_of(st.none(), st.binary(max_size=6))
# A batch of writes; None clears the map.
BATCHES = st.lists(st.lists(st.one_of(st.none(), st.tuples(KEYS, VALUES)), max_size=25), max_size=6)


class _Held(dict[str, bytes]):
    """An in-memory page store that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def get(self, name: str) -> bytes | None:  # type: ignore[override]
        self.calls += 1
        return super().get(name)

    def put(self, name: str, page: bytes) -> None:
        self.calls += 1
        self[name] = page

    def remove(self, name: str) -> None:
        self.calls += 1
        self.pop(name, None)


@given(BATCHES, KEYS, KEYS)
def test_flushed_entries_are_found_again(
    batches: list[list[tuple[bytes, bytes | None] | None]], low: bytes, high: bytes
) -> None:
    """Puts, removals and clears in several batches split pages all the time."""
    store, sizes, model = _Held(), {}, {}
    with patch.object(pages, "MAX_ENTRIES", 3), patch.object(pages, "MAX_BYTES", 16):
        for batch in batches:
            maps = PagedMaps(store, sizes)
            held = maps.open_map("m")
            for write in batch:
                if write is None:
                    held.clear()
                    model.clear()
                    continue
                held.put(*write)
                model[write[0]] = write[1]
            expected = sorted((key, value) for key, value in model.items() if value is not None)
            assert list(held.walk()) == expected
            sizes = maps.flush()
        held = PagedMaps(store, sizes).open_map("m")
        expected = sorted((key, value) for key, value in model.items() if value is not None)
        assert list(held.scan()) == expected
        assert list(held.scan(reverse=True)) == expected[::-1]
        assert list(held.scan(low, high)) == [each for each in expected if low <= each[0] <= high]
        assert held.first() == (expected[0] if expected else None)
        assert [held.get(key) for key, _ in expected] == [value for _, value in expected]
        assert len(held) == len(expected)
        assert bool(store) is bool(expected)


def _fill(count: int) -> tuple[_Held, Sizes]:
    store = _Held()
    maps = PagedMaps(store, {})
    for number in range(count):
        maps.open_map("m").put(b"%06d" % number, b"value")
    return store, maps.flush()


def test_a_batch_reads_and_writes_a_page_once() -> None:
    """The number of accesses to its keys does not matter; other pages are not read."""
    store, sizes = _fill(10_000)
    store.calls = 0
    maps = PagedMaps(store, sizes)
    held = maps.open_map("m")
    for _ in range(3):
        for number in range(1000, 1100):
            held.put(b"%06d" % number, held.get(b"%06d" % number))
    assert maps.flush() == sizes
    # The directory, and at most two pages, are read and written.
    assert store.calls <= 5


def test_an_empty_map_reads_nothing() -> None:
    """A map that was never written, or is empty again, makes no call to the state."""
    store, sizes = _fill(0)
    assert sizes == {}
    assert PagedMaps(store, sizes).open_map("m").get(b"a") is None
    assert store.calls == 0
