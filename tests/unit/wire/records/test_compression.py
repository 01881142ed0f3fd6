"""Compression and decompression: damaged bytes, bombs, and bytes of other clients."""

import gzip
import random
import struct
import tracemalloc
from types import ModuleType

import aiokafka.codec
import cramjam
import kafka.codec
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records import compression
from ottla.wire.records.compression import CODECS, compress, decompress
from tests.unit.wire.records import strategies

REAL_CODECS = [codec for codec in CODECS.values() if codec]
MEBIBYTE = 1 << 20
each_codec = pytest.mark.parametrize("codec", REAL_CODECS, ids=compression.NAMES.get)


def _error_code(codec: int, data: bytes, max_bytes: int = 64 * MEBIBYTE) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        decompress(codec, data, max_bytes=max_bytes)
    return caught.value.code


@given(codec=strategies.codecs, data=st.binary(max_size=5000), repeat=st.integers(1, 40))
def test_compressed_bytes_are_decompressed(codec: int, data: bytes, repeat: int) -> None:
    """Decompression returns the original bytes, from a buffer of any kind."""
    original = data * repeat
    packed = compress(codec, memoryview(original))
    assert decompress(codec, memoryview(packed), max_bytes=len(original)) == original


@each_codec
def test_several_megabytes_are_decompressed(codec: int) -> None:
    """Output of many pieces is joined in order."""
    original = random.Random(1).randbytes(MEBIBYTE) + b"ottla" * MEBIBYTE
    assert decompress(codec, compress(codec, original), max_bytes=len(original)) == original


@each_codec
def test_one_byte_over_the_limit_is_too_large(codec: int) -> None:
    """The limit is exact: that many bytes are allowed, and not one byte more."""
    packed = compress(codec, b"x" * 100_000)
    assert len(decompress(codec, packed, max_bytes=100_000)) == 100_000
    assert _error_code(codec, packed, 99_999) is ErrorCode.MESSAGE_TOO_LARGE


@each_codec
def test_a_bomb_costs_no_more_than_the_limit(codec: int) -> None:
    """A small message that decompresses to 64 MiB is rejected before that much memory is allocated."""
    bomb = compress(codec, bytes(64 * MEBIBYTE))
    tracemalloc.start()
    assert _error_code(codec, bomb, MEBIBYTE) is ErrorCode.MESSAGE_TOO_LARGE
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # One copy while pieces are collected, not counting the compressed bytes.
    assert peak < 4 * MEBIBYTE + 4 * len(bomb)


@each_codec
def test_every_truncation_is_detected(codec: int) -> None:
    """A truncated stream is corrupt, wherever it ends."""
    packed = compress(codec, random.Random(2).randbytes(500) * 3)
    # Snappy's framing has no end mark, so missing blocks cannot be detected.
    whole_blocks = {16} if codec == CODECS["snappy"] else set()
    for size in set(range(len(packed))) - whole_blocks:
        if codec == CODECS["snappy"] and size == 0:
            continue
        assert _error_code(codec, packed[:size]) is ErrorCode.CORRUPT_MESSAGE, size


@each_codec
def test_damage_is_corruption_or_other_bytes_but_no_other_error(codec: int) -> None:
    """Flipped bytes raise only the two errors of the interface."""
    chance = random.Random(3)
    packed = compress(codec, b"hello world, hello ottla" * 20)
    for _ in range(3000):
        damaged = bytearray(packed)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            decompress(codec, damaged, max_bytes=MEBIBYTE)
        except ApiError as error:
            assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


@each_codec
def test_random_bytes_are_corrupt(codec: int) -> None:
    """Random bytes are rejected."""
    assert _error_code(codec, b"\xff" * 50) is ErrorCode.CORRUPT_MESSAGE


def test_unknown_codec_is_named_in_the_error() -> None:
    """Codecs 5 to 7 fit into the attribute bits but do not exist."""
    assert _error_code(5, b"") is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_plain_bytes_have_the_limit_too() -> None:
    """Codec 0 copies up to the limit."""
    assert decompress(0, memoryview(b"abc"), max_bytes=3) == b"abc"
    assert _error_code(0, b"abcd", 3) is ErrorCode.MESSAGE_TOO_LARGE


def test_consecutive_gzip_streams_are_joined() -> None:
    """Java reads concatenated gzip members as one stream."""
    joined = gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(CODECS["gzip"], joined, max_bytes=100) == b"one two"


def test_raw_snappy_is_read() -> None:
    """The client librdkafka writes snappy without the framing of snappy-java."""
    original = b"raw snappy " * 1000
    packed = bytes(cramjam.snappy.compress_raw(original))
    assert decompress(CODECS["snappy"], packed, max_bytes=len(original)) == original


def test_joined_snappy_streams_are_read() -> None:
    """The library snappy-java accepts a further header between blocks."""
    joined = compress(CODECS["snappy"], b"one ") + compress(CODECS["snappy"], b"two")
    assert decompress(CODECS["snappy"], joined, max_bytes=100) == b"one two"


def test_declared_size_of_a_snappy_block_is_not_trusted() -> None:
    """The declared size alone never causes an allocation."""
    # A varint of 2**28, and two bytes without meaning.
    lie = b"\x80\x80\x80\x80\x01\x00\x00"
    assert _error_code(CODECS["snappy"], lie, 1 << 30) is ErrorCode.CORRUPT_MESSAGE


def test_lz4_writes_independent_blocks_and_reads_any() -> None:
    """The Java client reads independent blocks only; other clients write linked ones and sizes."""
    original = b"lz4 " * 60_000
    written = lz4.frame.get_frame_info(compress(CODECS["lz4"], original))
    assert not written["block_linked"]
    for linked in (True, False):
        packed = lz4.frame.compress(original, block_linked=linked, store_size=linked)
        assert decompress(CODECS["lz4"], packed, max_bytes=len(original)) == original


def test_an_lz4_frame_that_declares_another_size_is_corrupt() -> None:
    """A wrong declared size is damage."""
    frame = bytearray(lz4.frame.compress(b"lz4 " * 100, store_size=True))
    struct.pack_into("<Q", frame, 6, 1 << 40)
    assert _error_code(CODECS["lz4"], frame) is ErrorCode.CORRUPT_MESSAGE


def test_zstd_without_a_declared_size_is_read() -> None:
    """Streaming producers omit the size from the frame."""
    original = b"zstd " * 100_000
    stream = zstandard.ZstdCompressor().compressobj()
    packed = stream.compress(original) + stream.flush()
    assert zstandard.frame_content_size(packed) == -1
    assert decompress(CODECS["zstd"], packed, max_bytes=len(original)) == original
    assert _error_code(CODECS["zstd"], packed, 1000) is ErrorCode.MESSAGE_TOO_LARGE


def test_consecutive_zstd_frames_are_joined() -> None:
    """Zstd frames may follow one another; other bytes after a frame are damage."""
    one = zstandard.ZstdCompressor(write_checksum=True).compress(b"one ")
    joined = one + zstandard.ZstdCompressor().compress(b"two")
    assert decompress(CODECS["zstd"], joined, max_bytes=100) == b"one two"
    assert _error_code(CODECS["zstd"], joined + b"!") is ErrorCode.CORRUPT_MESSAGE


def test_huge_zstd_window_is_rejected() -> None:
    """A frame of a few bytes may request a window of 2 GiB."""
    parameters = zstandard.ZstdCompressionParameters(window_log=31)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = stream.compress(b"small") + stream.flush()
    assert zstandard.get_frame_parameters(packed).window_size == 1 << 31
    assert _error_code(CODECS["zstd"], packed) is ErrorCode.CORRUPT_MESSAGE


# The client kafka-python needs a further package for snappy.
FOREIGN = [
    (client, codec)
    for client in (kafka.codec, aiokafka.codec)
    for codec in REAL_CODECS
    if (client, codec) != (kafka.codec, CODECS["snappy"])
]


@pytest.mark.parametrize(("client", "codec"), FOREIGN)
def test_compression_is_compatible_with_other_clients(client: ModuleType, codec: int) -> None:
    """Other clients' codecs read Ottla's bytes, and the other way round."""
    name = compression.NAMES[codec]
    original = b"between friends " * 5000
    assert getattr(client, f"{name}_decode")(compress(codec, original)) == original
    theirs = getattr(client, f"{name}_encode")(original)
    assert decompress(codec, theirs, max_bytes=len(original)) == original


LEVELS = {
    CODECS["gzip"]: (-1, 1, 9),
    CODECS["snappy"]: (None,),
    CODECS["lz4"]: (1, 2, 3, 9, 12, 17),
    CODECS["zstd"]: (-131072, -1, 0, 1, 3, 22),
}


@each_codec
def test_every_valid_compression_level_works(codec: int) -> None:
    """All levels can be decompressed, and a higher one compresses better."""
    rng = random.Random(2)
    words = [rng.randbytes(8) for _ in range(300)]
    original = b"".join(rng.choice(words) for _ in range(8000))
    packed = [compress(codec, original, level) for level in LEVELS[codec]]
    for data in packed:
        assert decompress(codec, data, max_bytes=len(original)) == original
    assert len(LEVELS[codec]) == 1 or len(set(map(len, packed))) > 1


def test_default_compression_levels() -> None:
    """The defaults are Kafka's: -1, 9 (which is lz4's fast compressor) and 3."""
    original = random.Random(3).randbytes(500) * 20
    for name, level in (("gzip", -1), ("lz4", 9), ("zstd", 3)):
        codec = CODECS[name]
        assert compress(codec, original) == compress(codec, original, level)
