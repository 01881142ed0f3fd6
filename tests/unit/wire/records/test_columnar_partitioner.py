"""Keys in a column get the same partition as in the Java client and others."""

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as foreign_murmur2

from ottla.wire.records.columnar_partitioner import murmur2, murmur2_column, partitions_of


def _foreign(key: bytes) -> int:
    return int(foreign_murmur2(key)) & 0xFFFFFFFF


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=30))
def test_every_key_has_the_hash_of_other_clients(keys: list[bytes]) -> None:
    """The hash is the same as kafka-python's, for all keys at once and one at a time."""
    expected = [_foreign(key) for key in keys]
    assert murmur2_column(pa.array(keys, pa.binary())).tolist() == expected
    assert [murmur2(key) for key in keys] == expected


def test_known_hashes() -> None:
    """The values are from Kafka's own UtilsTest."""
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert {key: murmur2(key) for key in known} == {
        key: value & 0xFFFFFFFF for key, value in known.items()
    }


def test_very_long_keys_are_hashed_too() -> None:
    """A key of a megabyte does not delay the others."""
    keys = [b"a", random.Random(1).randbytes(1_000_001), b"", b"b" * 300]
    assert murmur2_column(pa.array(keys)).tolist() == [_foreign(key) for key in keys]


def test_slices_hash_their_own_keys() -> None:
    """An Arrow slice has an offset into the shared buffers."""
    keys = pa.array([b"zero", None, b"two", b"three"], pa.binary())
    assert murmur2_column(keys.slice(2)).tolist() == [_foreign(b"two"), _foreign(b"three")]


def test_rows_without_a_key_share_the_given_partition() -> None:
    """The sign bit is dropped, as by Kafka's toPositive; the caller chooses the partition of nulls."""
    keys = [b"key-%d" % index for index in range(100)]
    expected = [(_foreign(key) & 0x7FFFFFFF) % 7 for key in keys]
    partitions = partitions_of(pa.array([*keys, None], pa.binary()), 7, 5)
    assert partitions.tolist() == [*expected, 5]
