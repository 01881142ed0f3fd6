"""Writes the damaged files below `files/damaged`: `python -m tests.compat.scripts.damaged_files`.

Each is a file of `files/dumped-0` with one fault. Apache Kafka's tool shortens an index that has
an incomplete entry: write the files again after a recording.
"""

import random
import shutil
import struct

from tests.compat.scripts.transcript import FILES

_BASE = f"{0:020}"
_ROOT = FILES / "damaged"
_OFFSETS = struct.Struct(">ii")
_TIMES = struct.Struct(">qi")
# Positions of the second, the third and the last batch.
_SECOND, _THIRD, _LAST = 116, 205, 278
_LAST_TIME = 1795353886950


def _write(folder: str, name: str, data: bytes) -> None:
    (_ROOT / folder).mkdir(parents=True, exist_ok=True)
    (_ROOT / folder / name).write_bytes(data)


def _offsets(*rows: tuple[int, int]) -> bytes:
    return b"".join(_OFFSETS.pack(*row) for row in rows)


def _times(*rows: tuple[int, int]) -> bytes:
    return b"".join(_TIMES.pack(*row) for row in rows)


def _segments(log: bytes) -> None:
    source = random.Random(4)
    flipped = bytearray(log)
    flipped[_SECOND - 16] ^= 1
    negative = bytes(8) + struct.pack(">i", -5) + bytes(40)
    too_large = source.randbytes(8) + struct.pack(">i", 0x12345678) + source.randbytes(38)
    for folder, data in {
        "random": too_large,
        "trailing": log + bytes(5) + b"trailing bytes",
        "cut": log[: _LAST + 22],
        "zeros": log[:_THIRD] + bytes(80),
        "negative": log[:_SECOND] + negative,
        "flipped": bytes(flipped),
        "gap": log[:_SECOND] + log[_THIRD:],
    }.items():
        _write(folder, f"{_BASE}.log", data)
    _write("late", f"{5:020}.log", log[_THIRD:])


def _indexes(log: bytes, index: bytes, times: bytes) -> None:
    short = log[:_THIRD]
    wrong_times = _times(
        (1700000001001, 4), (1700000001001, 4), (1700000000000, 5), (1700000003000, 3),
        (1800000000000, 99),
    )  # fmt: skip
    wrong_offsets = _offsets((2, 0), (5, _SECOND), (6, _THIRD))
    for folder, data, offsets, timestamps in (
        ("beyond", short, _offsets((4, _SECOND), (9, 5000)), None),
        ("end", short, _offsets((4, _SECOND), (9, _THIRD)), None),
        ("mismatch", log, wrong_offsets, wrong_times),
        ("uneven", log, index + b"123", times + b"123"),
        ("unused", log, index[: _OFFSETS.size] + bytes(80), times[: _TIMES.size] + bytes(120)),
        ("all-zero", log, bytes(80), bytes(120)),
        ("empty", b"", b"", b""),
        ("without-log", None, index, times),
        ("order", log, _offsets((6, _LAST), (-2, 0)), _times((_LAST_TIME, 6), (1700000003000, 5))),
        ("low", log, index, _times((_LAST_TIME, 6), (_LAST_TIME, -2))),
    ):
        for ending, content in (("log", data), ("index", offsets), ("timeindex", timestamps)):
            if content is not None:
                _write(folder, f"{_BASE}.{ending}", content)


def _snapshots(snapshot: bytes) -> None:
    flipped = bytearray(snapshot)
    flipped[20] ^= 1
    contents = (
        bytes(flipped),
        snapshot[:-5],
        b"\0\7" + snapshot[2:],
        snapshot[:3],
        snapshot + b"x",
    )
    for number, data in enumerate(contents, 1):
        _write("snapshots", f"{number:020}.snapshot", data)


def main() -> None:
    """Write all of them."""
    shutil.rmtree(_ROOT, ignore_errors=True)
    source = FILES / "dumped-0"
    log, index, times = (
        (source / f"{_BASE}.{ending}").read_bytes() for ending in ("log", "index", "timeindex")
    )
    _segments(log)
    _indexes(log, index, times)
    _snapshots((source / f"{7:020}.snapshot").read_bytes())
    transaction = struct.pack(">hqqqq", 0, 7, 1, 5, 6)
    _write("transactions", f"{_BASE}.txnindex", transaction + transaction[:9])


if __name__ == "__main__":
    main()
