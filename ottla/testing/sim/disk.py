"""A disk with two states: the content that programs see, and the content that survives a power
loss.

Contract of the faults: content and length of a file are durable after it is synced. A name is
durable after its directory is synced. Nothing else is. At a power loss every unsynced write may
survive whole, in part (cut at any byte, or by 512-byte sectors in any order, missing ones reading
as zeros), or not at all. The same holds for unsynced names, but each change of names is atomic.
Durable data is never damaged. A failed sync drops the unsynced data, as Linux does: it can be read,
but no later sync stores it.
"""

from collections.abc import Iterator

from ottla.base.rng import Rng

SECTOR_BYTES = 512


class StoredFile:
    """Content as read now, and as it would be after a power loss."""

    __slots__ = ("_durable", "_pending", "content", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.content = bytearray()
        self.modified_ms = modified_ms
        self._durable = bytearray()
        # Writes since the last sync: (position, bytes), or (length, None) for a truncation.
        self._pending: list[tuple[int, bytes | None]] = []

    def write(self, position: int, data: bytes) -> None:
        """Write at a position; a gap before it reads as zeros."""
        if not data:
            return
        _apply(self.content, position, data)
        self._pending.append((position, data))

    def truncate(self, size_bytes: int) -> None:
        """Truncate or extend."""
        _apply(self.content, size_bytes, None)
        self._pending.append((size_bytes, None))

    def sync(self) -> None:
        """Make all unsynced data durable."""
        for position, data in self._pending:
            _apply(self._durable, position, data)
        self._pending.clear()

    def fail_sync(self) -> None:
        """Drop unsynced data: it stays readable until the power fails."""
        self._pending.clear()

    def damage(self, position: int, mask: int) -> None:
        """Flip bits of a byte, durably."""
        self.content[position] ^= mask
        if position < len(self._durable):
            self._durable[position] ^= mask

    def lose_power(self, rng: Rng) -> None:
        """Keep the durable data and a random part of the rest."""
        fate = rng.below(4)
        if fate == 1:
            self.sync()
        elif fate == 2:
            self._keep_first_bytes(rng)
        elif fate == 3:
            self._keep_sectors(rng)
        self._pending.clear()
        self.content = bytearray(self._durable)

    def _keep_first_bytes(self, rng: Rng) -> None:
        """Keep the writes in order, up to a random position inside one of them."""
        count = rng.below(len(self._pending) + 1)
        for position, data in self._pending[:count]:
            _apply(self._durable, position, data)
        if count < len(self._pending):
            position, data = self._pending[count]
            if data is not None:
                _apply(self._durable, position, data[: rng.below(len(data) + 1)])

    def _keep_sectors(self, rng: Rng) -> None:
        """Keep a random set of the written sectors and, independently, a random length."""
        after = bytearray(self._durable)
        touched: dict[int, None] = {}
        for position, data in self._pending:
            _apply(after, position, data)
            end = position + len(data or b"")
            sectors = range(position // SECTOR_BYTES, -(-end // SECTOR_BYTES))
            touched.update(dict.fromkeys(sectors))
        before_size = len(self._durable)
        low, high = sorted((before_size, len(after)))
        size_bytes = (before_size, len(after), low + rng.below(high - low + 1))[rng.below(3)]
        for sector in touched:
            if rng.below(2):
                start = sector * SECTOR_BYTES
                _apply(self._durable, start, bytes(after[start : start + SECTOR_BYTES]))
        _apply(self._durable, size_bytes, None)


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    if data is not None:
        content[position : position + len(data)] = data


class StoredFolder:
    """Names as seen now, and as they would be after a power loss."""

    __slots__ = ("durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, StoredFile | StoredFolder] = {}
        self.durable: dict[str, StoredFile | StoredFolder] = {}

    def files(self) -> Iterator[StoredFile]:
        """Yield every file below, by name."""
        for name in sorted(self.entries):
            entry = self.entries[name]
            if isinstance(entry, StoredFolder):
                yield from entry.files()
            else:
                yield entry


Stored = StoredFile | StoredFolder
# One atomic change of names; None removes a name.
NameChange = list[tuple[StoredFolder, str, Stored | None]]


class Disk:
    """Directories and files below one root; outlives the processes that use it."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self.root = StoredFolder()
        self.capacity_bytes = capacity_bytes
        # Background work takes this many times as long.
        self.slowness = 1.0
        # Locks by path, with their holders.
        self.locks: dict[str, object] = {}
        self._pending: list[NameChange] = []

    def change_names(self, change: NameChange) -> None:
        """Change names atomically; the change is durable when a directory that contains them is
        synced.
        """
        for folder, name, entry in change:
            if entry is None:
                del folder.entries[name]
            else:
                folder.entries[name] = entry
        self._pending.append(change)

    def sync_names(self, folder: StoredFolder) -> None:
        """Make every change durable that affects this directory."""
        pending = []
        for change in self._pending:
            if any(touched is folder for touched, _, _ in change):
                _make_durable(change)
            else:
                pending.append(change)
        self._pending = pending

    def sync(self) -> None:
        """Make every name and all content durable."""
        for change in self._pending:
            _make_durable(change)
        self._pending.clear()
        for file in self.root.files():
            file.sync()

    def used_bytes(self) -> int:
        """Return the total size of all files, in bytes."""
        return sum(len(file.content) for file in self.root.files())

    def room_for(self, size_bytes: int) -> int:
        """Return how many of `size_bytes` more fit on the disk."""
        if self.capacity_bytes is None:
            return size_bytes
        return max(0, min(size_bytes, self.capacity_bytes - self.used_bytes()))

    def lose_power(self, rng: Rng) -> None:
        """Keep the durable data and a random part of the rest."""
        self.locks.clear()
        fate = rng.below(3)
        survivors = self._pending[: rng.below(len(self._pending) + 1)] if fate else []
        if fate == 2:
            survivors = [change for change in self._pending if rng.below(2)]
        for change in survivors:
            _make_durable(change)
        self._pending.clear()
        self._return_to_durable(self.root)
        for file in self.root.files():
            file.lose_power(rng)

    def _return_to_durable(self, folder: StoredFolder) -> None:
        folder.entries = dict(folder.durable)
        for entry in folder.entries.values():
            if isinstance(entry, StoredFolder):
                self._return_to_durable(entry)


def _make_durable(change: NameChange) -> None:
    for folder, name, entry in change:
        if entry is None:
            folder.durable.pop(name, None)
        else:
            folder.durable[name] = entry
