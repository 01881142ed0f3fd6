"""The names of a log's files: by base offset, as in Apache Kafka; pure.

Follows org.apache.kafka.storage.internals.log.LogFileUtils.
"""

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a file that belongs to the segment at `base_offset`."""
    return f"{base_offset:020d}{suffix}"


def base_offset_of(name: str, suffix: str) -> int:
    """Return the base offset in a file's name; -1 if the file is not of this kind."""
    digits = name[:20]
    is_ours = len(name) == 20 + len(suffix) and name.endswith(suffix) and digits.isdecimal()
    return int(digits) if is_ours else -1
