"""The tree on disk: a journal of batches, and a snapshot from which a new journal starts.

One frame contains one batch of transactions under one checksum, and the next frame is written only
when the previous one is durable. A damaged frame at the very end is therefore a batch that was
never acknowledged (power failure), and is cut off. A damaged frame before a good one is reported as
an error.

    directory/cluster.lock          held while the tree is open
    directory/cluster.snapshot      all nodes, and the number of the journal that continues
    directory/cluster.journal.N     frames, from the oldest that the snapshot does not cover

No partition's folder can have such a name, so the directory may be a log directory.
"""

import logging
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ottla.base.errors import OutOfDescriptorsError, StorageError
from ottla.base.files import File, FileSystem, Lock, keep_others_out, make_directories_durably
from ottla.base.platform.descriptors import is_exhausted
from ottla.cluster.zk.tree import ChangeKind, Node, Tree, TreeChange
from ottla.wire.records.batch import crc32c

_log = logging.getLogger(__name__)

JOURNAL_MAGIC = b"OTLTREE1"
SNAPSHOT_MAGIC = b"OTLSNAP2"
# A snapshot of an earlier version, without the times of nodes.
_TIMELESS_MAGIC = b"OTLSNAP1"
SNAPSHOT = "cluster.snapshot"
JOURNAL_PREFIX = "cluster.journal."
_OWN_PREFIX = "cluster."
# A snapshot is due when the journal has this size and twice the size of the last snapshot.
JOURNAL_BYTES_MIN = 4 * 1024 * 1024

_FRAME_MARK = b"\xf5OTL"
_FRAME = struct.Struct(">4sII")  # mark, length, CRC-32C of the payload
_TRANSACTION = struct.Struct(">qI")  # zxid, number of changes
_CHANGE = struct.Struct(">BHIq")  # kind, length of path, length of data, owner
# In the place of the first change: the time of the transaction, in the field of the owner.
_TIME_KIND = 4
_SNAPSHOT = struct.Struct(">8sIQ")  # magic, CRC-32C of the payload, length
_SNAPSHOT_HEAD = struct.Struct(">qQQ")  # last zxid, first journal to replay, number of nodes
# Lengths of path and data, czxid, mzxid, version, creates, owner, and the two times.
_NODE = struct.Struct(">HIqqqqqqq")
_TIMELESS_NODE = struct.Struct(">HIqqqqq")


_NODE_FORMATS = {SNAPSHOT_MAGIC: _NODE, _TIMELESS_MAGIC: _TIMELESS_NODE}


class DirectoryInUse(StorageError):
    """Another process, or another tree of this process, has the directory open."""


class JournalEntry(NamedTuple):
    """Changes that were applied together, at a time in ms since 1970 (0 if it is not known)."""

    zxid: int
    changes: Sequence[TreeChange]
    time_ms: int


def encode_frame(batch: Sequence[JournalEntry]) -> bytes:
    """Return a batch in the format of the journal."""
    parts: list[bytes] = []
    for transaction in batch:
        parts.append(_TRANSACTION.pack(transaction.zxid, len(transaction.changes) + 1))
        parts.append(_CHANGE.pack(_TIME_KIND, 0, 0, transaction.time_ms))
        for change in transaction.changes:
            path = change.path.encode()
            parts.append(_CHANGE.pack(change.kind, len(path), len(change.data), change.owner))
            parts += (path, change.data)
    payload = b"".join(parts)
    return _FRAME.pack(_FRAME_MARK, len(payload), crc32c(payload)) + payload


def decode_batch(payload: bytes) -> Iterator[JournalEntry]:
    """Yield the transactions of a frame whose checksum is correct."""
    position = 0
    while position < len(payload):
        zxid, count = _TRANSACTION.unpack_from(payload, position)
        position += _TRANSACTION.size
        changes = []
        time_ms = 0
        for _ in range(count):
            kind, path_length, length, owner = _CHANGE.unpack_from(payload, position)
            position += _CHANGE.size
            if kind == _TIME_KIND:
                time_ms = owner
                continue
            path = payload[position : position + path_length].decode()
            position += path_length
            data = payload[position : position + length]
            position += length
            changes.append(TreeChange(ChangeKind(kind), path, data, owner))
        yield JournalEntry(zxid, changes, time_ms)


def frame_at(content: bytes, position: int) -> bytes | None:
    """Return the payload of the frame that starts here; None unless it is whole and undamaged."""
    if position + _FRAME.size > len(content):
        return None
    mark, length, crc = _FRAME.unpack_from(content, position)
    start = position + _FRAME.size
    payload = content[start : start + length]
    if mark != _FRAME_MARK or len(payload) != length or crc32c(payload) != crc:
        return None
    return payload


def find_frame(content: bytes, position: int) -> int:
    """Return the position of the next undamaged frame at or after `position`; -1 if no undamaged
    frame follows.
    """
    while (position := content.find(_FRAME_MARK, position)) >= 0:
        if frame_at(content, position) is not None:
            return position
        position += 1
    return -1


def encode_snapshot(last_zxid: int, first_journal: int, nodes: Mapping[str, Node]) -> bytes:
    """Return all nodes in the format of the snapshot file."""
    parts = [_SNAPSHOT_HEAD.pack(last_zxid, first_journal, len(nodes))]
    for path, node in nodes.items():
        name = path.encode()
        parts += (_NODE.pack(len(name), len(node.data), *node[1:]), name, node.data)
    payload = b"".join(parts)
    return _SNAPSHOT.pack(SNAPSHOT_MAGIC, crc32c(payload), len(payload)) + payload


class Snapshot(NamedTuple):
    """The content of a snapshot file."""

    last_zxid: int
    first_journal: int
    nodes: dict[str, Node]


def decode_snapshot(content: bytes) -> Snapshot | None:
    """Return the snapshot; None unless it is whole and undamaged."""
    if len(content) < _SNAPSHOT.size:
        return None
    magic, crc, length = _SNAPSHOT.unpack_from(content)
    payload = content[_SNAPSHOT.size :]
    node_format = _NODE_FORMATS.get(magic)
    if node_format is None or len(payload) != length or crc32c(payload) != crc:
        return None
    last_zxid, first_journal, count = _SNAPSHOT_HEAD.unpack_from(payload)
    position = _SNAPSHOT_HEAD.size
    nodes = {}
    for _ in range(count):
        path_length, data_length, *counters = node_format.unpack_from(payload, position)
        position += node_format.size
        path = payload[position : position + path_length].decode()
        position += path_length
        nodes[path] = Node(payload[position : position + data_length], *counters)
        position += data_length
    return Snapshot(last_zxid, first_journal, nodes)


class Journal:
    """The files of one tree. `write`, `begin_next` and `store_snapshot` block: call them off the
    loop.

    Used by one flusher at a time; only `store_snapshot` may run beside `write`.
    """

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._number = 0
        self._snapshot_bytes = 0
        # Position and bytes of the last batch that was read.
        self._end = 0, JOURNAL_MAGIC
        self._file: File | None = None
        self._lock = self._acquire()

    def _acquire(self) -> Lock:
        """Create the directory, with durable names from the top, and take its lock."""
        try:
            make_directories_durably(self._files, self._directory)
            lock = self._files.lock(f"{self._directory}/cluster.lock")
            self._keep_others_out()
            return lock
        except BlockingIOError as error:
            raise DirectoryInUse(
                self._directory,
                "another process uses this directory. Stop it first, or name another directory.",
            ) from error
        except OSError as error:
            raise self._failure("cannot be opened", error) from error

    def _keep_others_out(self) -> None:
        """The tree has the secret of the brokers and the keys of users."""
        names = self._files.list(self._directory)
        own = [name for name in names if name.startswith(_OWN_PREFIX)]
        keep_others_out(self._files, [f"{self._directory}/{name}" for name in own])
        if len(own) == len(names):
            # A log directory is restricted by its owner.
            keep_others_out(self._files, [self._directory])

    def _failure(self, failure: str, error: OSError) -> StorageError:
        return (OutOfDescriptorsError if is_exhausted(error) else StorageError)(
            self._directory,
            f"the coordination tree {failure}: {error}. Check the disk and the permissions of the"
            " directory, then start again.",
        )

    def load(self, tree: Tree) -> bool:
        """Rebuild the tree from the files, and open the journal; return False if no files existed.

        Raises StorageError, which names the damage and the remedy. An unfinished last batch is cut
        off.
        """
        try:
            return self._load(tree)
        except OSError as error:
            raise self._failure("cannot be read", error) from error

    def _load(self, tree: Tree) -> bool:
        snapshot = self._load_snapshot()
        first = 0
        if snapshot is not None:
            first = snapshot.first_journal
            tree.restore(snapshot.last_zxid, snapshot.nodes)
        numbers = self._journal_numbers()
        for number in [number for number in numbers if number < first]:
            # The process ended after it wrote the snapshot and before it created the journal.
            self._files.remove(self._journal_path(number))
        numbers = [number for number in numbers if number >= first]
        expected = list(range(first, first + max(len(numbers), snapshot is not None)))
        if numbers != expected:
            missing = min(set(expected) - set(numbers))
            raise StorageError(
                self._directory,
                f"the file {JOURNAL_PREFIX}{missing} is missing, and with it changes to the list of"
                " topics. Restore the directory from a backup.",
            )
        for number in numbers:
            self._replay(tree, number, is_last=number == numbers[-1])
        if numbers:
            self._number = numbers[-1]
            self._file = self._files.open(self._journal_path(self._number))
            self._write_end_again(self._file)
        else:
            self._number = first
            self._file = self._create_file(first)
        return snapshot is not None or bool(numbers)

    def _load_snapshot(self) -> Snapshot | None:
        path = f"{self._directory}/{SNAPSHOT}"
        if not self._files.exists(path):
            return None
        content = self._files.read(path)
        self._snapshot_bytes = len(content)
        snapshot = decode_snapshot(content)
        if snapshot is None:
            raise StorageError(
                self._directory,
                f"the file {SNAPSHOT} is damaged, and with it the list of topics. Restore the"
                " directory from a backup; moving it away starts an empty cluster.",
            )
        return snapshot

    def _journal_numbers(self) -> list[int]:
        names = self._files.list(self._directory)
        texts = [name.removeprefix(JOURNAL_PREFIX) for name in names if JOURNAL_PREFIX in name]
        return sorted(int(text) for text in texts if text.isdigit())

    def _journal_path(self, number: int) -> str:
        return f"{self._directory}/{JOURNAL_PREFIX}{number}"

    def _replay(self, tree: Tree, number: int, *, is_last: bool) -> None:
        path = self._journal_path(number)
        content = self._files.read(path)
        position = len(JOURNAL_MAGIC)
        self._end = 0, JOURNAL_MAGIC
        if content[:position] != JOURNAL_MAGIC:
            self._refuse_damage(path, content, 0, is_last)
            self._cut(path, 0, len(content))
            return
        while position < len(content):
            payload = frame_at(content, position)
            if payload is None:
                self._refuse_damage(path, content, position, is_last)
                self._cut(path, position, len(content))
                return
            for transaction in decode_batch(payload):
                # A snapshot may cover changes that were not in the journal yet.
                if transaction.zxid > tree.last_zxid:
                    tree.replay(transaction.zxid, transaction.changes, transaction.time_ms)
            end = position + _FRAME.size + len(payload)
            self._end = position, content[position:end]
            position = end

    def _write_end_again(self, file: File) -> None:
        """Make the last batch durable, because its sync may have failed in an earlier process.

        Linux keeps such bytes readable but does not write them to the device until they are written
        again.
        """
        position, frame = self._end
        file.write_at(position, frame)
        file.sync()
        self._files.sync_directory(self._directory)

    def _refuse_damage(self, path: str, content: bytes, position: int, is_last: bool) -> None:
        following = find_frame(content, position + 1)
        if is_last and following < 0:
            return
        raise StorageError(
            self._directory,
            f"{path} is damaged at byte {position}, and changes that were acknowledged follow."
            " Restore the directory from a backup. To continue with the changes before the damage"
            f" and lose the rest, cut the file there: truncate -s {position} {path}",
        )

    def _cut(self, path: str, position: int, size_bytes: int) -> None:
        _log.warning(
            "coordination journal: cut an unfinished batch path=%s at=%d bytes=%d",
            path,
            position,
            size_bytes - position,
        )
        file = self._files.open(path)
        file.truncate(position)
        if position == 0:
            file.append(JOURNAL_MAGIC)
        file.sync()
        file.close()

    def _create_file(self, number: int) -> File:
        """Create a journal durably; after an OSError no journal has this number."""
        path = self._journal_path(number)
        file = self._files.open(path, create=True)
        try:
            file.append(JOURNAL_MAGIC)
            file.sync()
            self._files.sync_directory(self._directory)
        except OSError:
            file.close()
            with suppress(OSError):
                self._files.remove(path)
            raise
        return file

    @property
    def is_snapshot_due(self) -> bool:
        """Return True if the journal is so long that a snapshot should replace it."""
        size = self._file.size() if self._file is not None else 0
        return size > max(JOURNAL_BYTES_MIN, 2 * self._snapshot_bytes)

    def write(self, batch: Sequence[JournalEntry]) -> None:
        """Append a batch and return once it is durable; after an OSError the journal is unusable."""
        assert self._file is not None, "the journal is not open"
        self._file.append(encode_frame(batch))
        self._file.sync()

    def begin_next(self) -> int:
        """Continue in a new file and return its number: a snapshot taken now makes the others
        obsolete.

        After an OSError the journal continues in the file that it has.
        """
        assert self._file is not None, "the journal is not open"
        former, self._file = self._file, self._create_file(self._number + 1)
        former.close()
        self._number += 1
        return self._number

    def store_snapshot(self, last_zxid: int, first_journal: int, nodes: Mapping[str, Node]) -> None:
        """Write all nodes durably, then remove the previous journals."""
        content = encode_snapshot(last_zxid, first_journal, nodes)
        self._files.replace(f"{self._directory}/{SNAPSHOT}", content)
        self._snapshot_bytes = len(content)
        for number in self._journal_numbers():
            if number < first_journal:
                self._files.remove(self._journal_path(number))

    def close(self) -> None:
        """Close the file and release the directory; idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()
