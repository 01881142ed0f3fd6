"""Reads of whole batches that do not block the event loop."""

from ottla.base.buffers import FileRange
from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.replication.partition import Partition


async def read_chunk(
    partition: Partition, offset: int, end_offset: int, *, max_bytes: int
) -> memoryview:
    """Return whole batches from `offset` to `end_offset`, at least one; empty if no batch is left.

    Only positions are looked up on the event loop. Raises ApiError or StorageError.
    """
    fetched = partition.read(
        offset, max_bytes, end_offset, 1, at_least_one=True, only_if_cached=True
    )
    if fetched is None:
        await partition.warm(offset, max_bytes)
        fetched = partition.read(
            offset, max_bytes, end_offset, 1, at_least_one=True, only_if_cached=False
        )
    assert fetched is not None, "only reads of cached bytes return None"
    records = fetched.records
    if not isinstance(records, FileRange):
        return memoryview(bytes(records))
    data = await records.source.read_in_background(records.position, records.size_bytes)
    if records.is_void:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, "The log was truncated during the read.")
    return memoryview(data)


def as_api_error(error: ApiError | StorageError) -> ApiError:
    """Return the error that a client gets for a failed read."""
    if isinstance(error, ApiError):
        return error
    return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
