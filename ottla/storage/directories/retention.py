"""Retention of one log, with the failures of that log kept inside it."""

import logging

from ottla.base.errors import StorageError
from ottla.storage.log.log import Log

_log = logging.getLogger(__name__)


def apply_retention(log: Log, now_ms: int | None) -> int:
    """Delete segments that exceed the topic's retention; log one line for the partition."""
    try:
        count = log.deletion.apply_retention(log.high_watermark, now_ms)
    except StorageError:
        raise
    except Exception as error:
        log.exclude_from_upkeep(error)
        raise
    if count:
        _log.info("segments deleted by retention partition=%s-%d segments=%d log_start_offset=%d",
                  log.topic, log.partition, count, log.log_start_offset)  # fmt: skip
    return count
