"""The four codecs of the record batch format, with a limit on decompressed output.

A few hundred hostile bytes can claim, or really decompress to, gigabytes. Every codec here
decompresses piece by piece and stops at the caller's `max_bytes`. Larger output is counted before
it is kept, so that a rejected batch takes little memory. A declared size is only used to reject
data early. The caller sets the limit. Follows org.apache.kafka.common.record.CompressionType
and its codecs: lz4 frames have independent blocks (the Java client reads no others). Snappy is
written with snappy-java's framing and read with and without it.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module

# A broker opens few batches: the libraries take 10 ms and 2 MB to load.
if TYPE_CHECKING:
    import cramjam
    import zstandard
    from lz4 import frame as lz4_frame
else:
    cramjam = deferred_module("cramjam")
    lz4_frame = deferred_module("lz4.frame")
    zstandard = deferred_module("zstandard")

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = MappingProxyType({"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD})
NAMES = MappingProxyType({codec: name for name, codec in CODECS.items()})

# Kafka has no limit; this one is for callers without a better value.
DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024

# Larger output is decompressed twice.
_KEPT_BYTES = 12 * 1024 * 1024
_FIRST_PIECE_BYTES = 64 * 1024
_PIECE_BYTES_MAX = 4 * 1024 * 1024
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS
# zstd frames without a size make the reader allocate their window; Java's client reads up to 2**27.
_ZSTD_WINDOW_BYTES = (8 * 1024 * 1024, 128 * 1024 * 1024)
_ZSTD_LEVEL = 3
# Kafka's default, the fast compressor.
_LZ4_LEVEL = 9
_LZ4_SLOW_LEVEL_MIN = 3

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
# A snappy element of 3 bytes decompresses to at most 64 bytes: a larger declared size is false.
_SNAPPY_RATIO_MAX = 22
_INT32 = struct.Struct(">i")


def _damage() -> tuple[type[Exception], ...]:
    """Return the exceptions that the codecs raise for damaged bytes."""
    return (
        zlib.error,
        cramjam.DecompressionError,
        RuntimeError,  # the exception of lz4.frame
        EOFError,
        zstandard.ZstdError,
        struct.error,
    )


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress with the codec of this number; 0 copies the data. `level` None is the codec's
    default.
    """
    return _COMPRESSORS[codec](data, level)


def decompress(codec: int, data: Buffer, *, max_bytes: int) -> bytes:
    """Decompress at most `max_bytes`.

    Raises ApiError: MESSAGE_TOO_LARGE if the output would be larger, CORRUPT_MESSAGE for damaged or
    truncated bytes, UNSUPPORTED_COMPRESSION_TYPE for a codec that does not exist.
    """
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"There is no codec {codec}.")
    try:
        collected = _collect(decompressor(data, max_bytes), max_bytes)
        return b"".join(decompressor(data, max_bytes)) if collected is None else collected
    except _damage() as error:
        raise _corrupt(codec, str(error)) from error


def _collect(pieces: Iterator[bytes], max_bytes: int) -> bytes | None:
    """Return the joined pieces; None if they are within the limit, but too large to be kept yet."""
    first = next(pieces, b"")
    collected = [first]
    size = len(first)
    for piece in pieces:
        size += len(piece)
        if size > max_bytes:
            break
        if size > _KEPT_BYTES:
            collected.clear()
        else:
            collected.append(piece)
    if size > max_bytes:
        raise _too_large(max_bytes)
    if size > _KEPT_BYTES and len(collected) != 1:
        return None
    return first if len(collected) == 1 else b"".join(collected)


def _too_large(max_bytes: int) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE, f"A batch decompresses to more than {max_bytes} bytes."
    )


def _corrupt(codec: int, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.CORRUPT_MESSAGE, f"A batch does not decompress with {NAMES[codec]}: {reason}."
    )


def _piece_sizes(compressed_bytes: int, max_bytes: int) -> Iterator[int]:
    """Yield the sizes of the next reads: growing, up to one byte past the limit to detect an
    excess.
    """
    left_bytes = max_bytes + 1
    size = max(_FIRST_PIECE_BYTES, 4 * compressed_bytes)
    while left_bytes > 0:
        size = min(size, left_bytes, _PIECE_BYTES_MAX)
        yield size
        left_bytes -= size
        size *= 2


def _decompress_none(data: Buffer, max_bytes: int) -> Iterator[bytes]:
    if len(data) > max_bytes:
        raise _too_large(max_bytes)
    yield bytes(data)


def _compress_none(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    compressor = zlib.compressobj(-1 if level is None else level, wbits=_GZIP_WINDOW_BITS)
    return compressor.compress(data) + compressor.flush()


def _decompress_gzip(data: Buffer, max_bytes: int) -> Iterator[bytes]:
    rest: Buffer = data
    stream = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
    left_bytes = max_bytes + 1
    size = max(_FIRST_PIECE_BYTES, 4 * len(data))
    while left_bytes > 0:
        piece = stream.decompress(rest, min(size, left_bytes))
        yield piece
        left_bytes -= len(piece)
        if not stream.eof:
            rest = stream.unconsumed_tail
        elif stream.unused_data:
            # gzip streams may follow one another; Java reads them as one.
            rest = stream.unused_data
            stream = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
        else:
            return
        if not rest:
            raise _corrupt(GZIP, "it ends too early")


def _compress_snappy(data: Buffer, level: int | None) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, max_bytes: int) -> Iterator[bytes]:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield _snappy_block(view, max_bytes)
        return
    if len(view) < len(_XERIAL_HEADER):
        raise _corrupt(SNAPPY, "it ends too early")
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            # Concatenated streams have a header each.
            position += len(_XERIAL_HEADER)
            continue
        (size,) = _INT32.unpack_from(view, position)
        position += _INT32.size
        if not 0 <= size <= len(view) - position:
            raise _corrupt(SNAPPY, "a block is longer than what is left")
        yield _snappy_block(view[position : position + size], max_bytes)
        position += size


def _snappy_block(block: memoryview, max_bytes: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > _SNAPPY_RATIO_MAX * len(block):
        raise _corrupt(SNAPPY, "a block declares an impossible size")
    if size > max_bytes:
        raise _too_large(max_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    # As in Kafka, the default level selects the fast compressor, any other level the slow one.
    effort = 0 if level in (None, _LZ4_LEVEL) else max(level, _LZ4_SLOW_LEVEL_MIN)
    return bytes(
        lz4_frame.compress(data, compression_level=effort, block_linked=False, store_size=False)
    )


def _decompress_lz4(data: Buffer, max_bytes: int) -> Iterator[bytes]:
    stream = lz4_frame.LZ4FrameDecompressor()
    rest: Buffer = data
    for size in _piece_sizes(len(data), max_bytes):
        yield stream.decompress(rest, size)
        if stream.eof:
            if stream.unused_data:
                raise _corrupt(LZ4, "bytes follow the end of the frame")
            return
        if stream.needs_input:
            raise _corrupt(LZ4, "it ends too early")
        rest = b""


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    used = _ZSTD_LEVEL if level is None else level
    return zstandard.ZstdCompressor(level=used).compress(data)


def _decompress_zstd(data: Buffer, max_bytes: int) -> Iterator[bytes]:
    # The decompressor cannot distinguish a truncated frame from a complete one: check the blocks
    # first.
    _check_zstd_frames(memoryview(data))
    declared = zstandard.frame_content_size(data)
    if declared > max_bytes:
        raise _too_large(max_bytes)
    least, most = _ZSTD_WINDOW_BYTES
    context = zstandard.ZstdDecompressor(max_window_size=max(least, min(most, max_bytes)))
    with context.stream_reader(data, read_across_frames=True) as stream:
        for size in _piece_sizes(max(len(data), declared), max_bytes):
            piece = stream.read(size)
            yield piece
            if len(piece) < size:
                return


def _check_zstd_frames(data: memoryview) -> None:
    """Follow the block headers (RFC 8878, 3.1.1): the last block must end where the data ends."""
    position = 0
    while True:
        frame = zstandard.get_frame_parameters(data[position:])
        position += zstandard.frame_header_size(data[position:])
        is_last = False
        while not is_last:
            if position + 3 > len(data):
                raise _corrupt(ZSTD, "it ends too early")
            header = int.from_bytes(data[position : position + 3], "little")
            is_last = bool(header & 1)
            is_repeated_byte = (header >> 1) & 3 == 1
            position += 3 + (1 if is_repeated_byte else header >> 3)
        position += 4 if frame.has_checksum else 0
        if position == len(data):
            return
        if position > len(data):
            raise _corrupt(ZSTD, "it ends too early")


_COMPRESSORS: dict[int, Callable[[Buffer, int | None], bytes]] = {
    NONE: _compress_none,
    GZIP: _compress_gzip,
    SNAPPY: _compress_snappy,
    LZ4: _compress_lz4,
    ZSTD: _compress_zstd,
}
_DECOMPRESSORS: dict[int, Callable[[Buffer, int], Iterator[bytes]]] = {
    NONE: _decompress_none,
    GZIP: _decompress_gzip,
    SNAPPY: _decompress_snappy,
    LZ4: _decompress_lz4,
    ZSTD: _decompress_zstd,
}
