"""Reading of records from the disk into the page cache, off the event loop.

A consumer that reads old records must not make the loop wait for a device. This reads the bytes
that it is about to fetch through separate descriptors, so that concurrent operations of the log
(rolling, truncating, deleting) and this one do not disturb each other. Errors are ignored here: the
read that follows reports them.
"""

from bisect import bisect_right

from ottla.base.files import FileSystem
from ottla.storage.files.file_names import INDEX_SUFFIX, LOG_SUFFIX, base_offset_of, file_name
from ottla.storage.files.index import OffsetIndex

# Distance of index entries, approximately; the batch itself lies after the entry.
_SLACK_BYTES = 64 * 1024
_CHUNK_BYTES = 1024 * 1024


def warm(files: FileSystem, directory: str, offset: int, max_bytes: int) -> None:
    """Read up to about `max_bytes` from the position of `offset` in the log at `directory`. Blocks."""
    try:
        _warm(files, directory, offset, max_bytes)
    except OSError:
        # The segment has been deleted; the read that follows reports the result.
        return


def _warm(files: FileSystem, directory: str, offset: int, max_bytes: int) -> None:
    offsets = (base_offset_of(name, LOG_SUFFIX) for name in files.list(directory))
    bases = sorted(base for base in offsets if base >= 0)
    at = bisect_right(bases, offset) - 1
    if at < 0:
        return
    base_offset = bases[at]
    path = f"{directory}/{file_name(base_offset, LOG_SUFFIX)}"
    index_path = f"{directory}/{file_name(base_offset, INDEX_SUFFIX)}"
    size_bytes = files.size(path)
    position = 0
    if files.exists(index_path):
        index = OffsetIndex.decode(base_offset, files.read(index_path), size_bytes)
        position = index.lookup(offset).position
    file = files.open(path)
    try:
        end = min(size_bytes, position + max_bytes + _SLACK_BYTES)
        while position < end:
            position += len(file.read_at(position, min(_CHUNK_BYTES, end - position))) or end
    finally:
        file.close()
