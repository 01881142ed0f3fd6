"""Maps on disk behave as maps in memory, and a crash returns them to their last batch."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.streams.local.disk import maps
from ottla.streams.local.disk.database import SavedState, StateDatabase
from ottla.streams.stores.ordered import MemoryBytes, OrderedBytes

_KEYS = st.binary(min_size=0, max_size=2)
_VALUES = st.binary(max_size=3)
_NAMES = st.sampled_from(["a", "b/1"])


class MapsOnDisk(RuleBasedStateMachine):
    """Two maps of a database beside two in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._database = StateDatabase(self._folder.name)
        self._maps: dict[str, MemoryBytes] = {"a": MemoryBytes(), "b/1": MemoryBytes()}
        self._saved: dict[str, dict[bytes, bytes]] = {"a": {}, "b/1": {}}
        self._positions: dict[str, int] = {}

    def _pair(self, name: str) -> tuple[OrderedBytes, OrderedBytes]:
        return self._database.open_map(name), self._maps[name]

    @rule(name=_NAMES, key=_KEYS, value=st.one_of(st.none(), _VALUES))
    def put(self, name: str, key: bytes, value: bytes | None) -> None:
        """Put or remove a key."""
        for entries in self._pair(name):
            entries.put(key, value)

    @rule(name=_NAMES)
    def clear(self, name: str) -> None:
        """Remove all keys."""
        for entries in self._pair(name):
            entries.clear()

    @rule(name=_NAMES)
    def pop_first(self, name: str) -> None:
        """Remove the first key, as buffers do."""
        first = self._maps[name].first()
        assert self._database.open_map(name).first() == first
        if first is not None:
            self.put(name, first[0], None)

    @rule(name=_NAMES, low=st.one_of(st.none(), _KEYS), high=st.one_of(st.none(), _KEYS))
    def scan(self, name: str, low: bytes | None, high: bytes | None) -> None:
        """Scan a range in both directions."""
        mine, theirs = self._pair(name)
        for reverse in (False, True):
            rows = mine.scan(low, high, reverse=reverse)
            assert list(rows) == list(theirs.scan(low, high, reverse=reverse))

    @rule(name=_NAMES)
    def count(self, name: str) -> None:
        """Count the keys; from now on each put counts."""
        mine, theirs = self._pair(name)
        assert len(mine) == len(theirs)

    @rule(position=st.integers(0, 99))
    def save(self, position: int) -> None:
        """Write a batch."""
        self._positions = {"topic": position}
        self._database.save(SavedState("these", self._positions, {"a": (1, [2])}, 3))
        self._saved = {name: dict(entries.walk()) for name, entries in self._maps.items()}

    @rule()
    def crash(self) -> None:
        """Lose the writes since the last batch."""
        self._database.close()
        self._database = StateDatabase(self._folder.name)
        assert self._database.saved.positions == self._positions
        for name, rows in self._saved.items():
            self._maps[name] = MemoryBytes()
            for key, value in rows.items():
                self._maps[name].put(key, value)

    @invariant()
    def same(self) -> None:
        """Each key has the same value."""
        for name in self._maps:
            mine, theirs = self._pair(name)
            assert dict(mine.walk()) == dict(theirs.walk())
            assert all(mine.get(key) == value for key, value in theirs.walk())
            assert mine.first() == theirs.first()
            assert mine.get(b"none") is None

    def teardown(self) -> None:
        """Delete the folder."""
        self._database.close()
        self._folder.cleanup()


TestMapsOnDisk = MapsOnDisk.TestCase
TestMapsOnDisk.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[StateDatabase]:
    """An empty database."""
    opened = StateDatabase(str(tmp_path))
    yield opened
    opened.close()


def test_the_cache_of_a_map_is_bounded(
    database: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries that were dropped from the cache are read from the database."""
    monkeypatch.setattr(maps, "CACHED_BYTES", 10 * maps.ENTRY_BYTES)
    entries = database.open_map("a")
    for number in range(200):
        entries.put(b"%d" % number, b"x%d" % number)
    database.save(SavedState("these"))
    assert all(entries.get(b"%d" % number) == b"x%d" % number for number in range(200))
    assert entries.cached_count <= 20


def test_expired_segments_leave_no_names(database: StateDatabase, tmp_path: Path) -> None:
    """A map that was cleared is not part of the next batch; it can be used again."""
    for name in ("s/1", "s/2"):
        database.open_map(name).put(b"k", b"v")
    database.save(SavedState("these"))
    database.open_map("s/1").clear()
    database.save(SavedState("these"))
    database.open_map("s/3").put(b"k", b"v3")
    database.save(SavedState("these"))
    again = StateDatabase(str(tmp_path))
    assert sorted(again.names) == ["s/2", "s/3"]
    assert list(again.open_map("s/1").walk()) == []
    assert list(again.open_map("s/3").walk()) == [(b"k", b"v3")]
    again.close()
