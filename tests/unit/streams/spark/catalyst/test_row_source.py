"""The marks that the source of a query in the JVM adds to its records."""

import random

import pyarrow as pa

from ottla.streams.spark.catalyst.row_source import PLAIN, plain_bits

_WORDS = (None, b"", b"a", b"\xff", b"ab\x80c", b"\x7f", "é".encode())


def test_ascii_keys_and_values_are_marked() -> None:
    """Each is marked independently of its neighbours; a missing one counts as ASCII."""
    chance = random.Random(1)
    for _ in range(200):
        count = chance.randrange(9)
        keys, values = ([chance.choice(_WORDS) for _ in range(count)] for _ in range(2))
        # A slice of a larger array, like real batches.
        cut = pa.array([b"\xff", *keys, b"\xff"], pa.binary()).slice(1, count)
        expected = [
            PLAIN["key"] * (key or b"").isascii() + PLAIN["value"] * (value or b"").isascii()
            for key, value in zip(keys, values, strict=True)
        ]
        assert plain_bits(cut, pa.array(values, pa.binary())).to_pylist() == expected
