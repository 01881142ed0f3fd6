"""Compare embedded stores for the state of tasks: SQLite, LMDB, RocksDB (rocksdict).

Run it with `python -m bench.state_stores`; lmdb and rocksdict are no dependencies: install them
into the environment first. Each store runs in a process of its own.
"""

import importlib
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

_KEYS, _BATCH, _READS, _RANGES = 200_000, 4_000, 50_000, 5_000
_VALUE = b"v" * 40


class _Sqlite:
    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(os.path.join(path, "state.db"), isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "cache_size=-8192"):
            self._db.execute(f"PRAGMA {pragma}")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS entries (map INTEGER, key BLOB, value BLOB, "
            "PRIMARY KEY (map, key)) WITHOUT ROWID"
        )

    def write(self, rows: list[tuple[bytes, bytes]]) -> None:
        self._db.execute("BEGIN")
        numbered = [(1, *row) for row in rows]
        self._db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", numbered)
        self._db.execute("COMMIT")

    def get(self, key: bytes) -> bytes | None:
        query = "SELECT value FROM entries WHERE map = ? AND key = ?"
        row = self._db.execute(query, (1, key)).fetchone()
        return None if row is None else row[0]

    def rows(self, low: bytes, high: bytes) -> list[tuple[bytes, bytes]]:
        query = "SELECT key, value FROM entries WHERE map = ? AND key >= ? AND key <= ?"
        return self._db.execute(f"{query} ORDER BY key", (1, low, high)).fetchall()


class _Lmdb:
    def __init__(self, path: str) -> None:
        lmdb = importlib.import_module("lmdb")
        self._db = lmdb.open(path, map_size=1 << 30, sync=False, metasync=False, writemap=True)
        self._read = self._db.begin(buffers=False)

    def write(self, rows: list[tuple[bytes, bytes]]) -> None:
        self._read.abort()
        with self._db.begin(write=True) as txn:
            txn.cursor().putmulti(rows)
        self._read = self._db.begin()

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._read.get(key)
        return value

    def rows(self, low: bytes, high: bytes) -> list[tuple[bytes, bytes]]:
        results = []
        cursor = self._read.cursor()
        if cursor.set_range(low):
            for row in cursor.iternext():
                if row[0] > high:
                    break
                results.append(row)
        return results


class _Rocks:
    def __init__(self, path: str) -> None:
        self._rocks: Any = importlib.import_module("rocksdict")
        self._db = self._rocks.Rdict(path, self._rocks.Options(raw_mode=True))

    def write(self, rows: list[tuple[bytes, bytes]]) -> None:
        batch = self._rocks.WriteBatch(raw_mode=True)
        for key, value in rows:
            batch[key] = value
        self._db.write(batch)

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._db.get(key)
        return value

    def rows(self, low: bytes, high: bytes) -> list[tuple[bytes, bytes]]:
        results = []
        for row in self._db.items(from_key=low):
            if row[0] > high:
                break
            results.append(row)
        return results


_STORES: dict[str, Callable[[str], Any]] = {"sqlite": _Sqlite, "lmdb": _Lmdb, "rocksdict": _Rocks}


def _batches(keys: list[bytes]) -> Iterator[list[tuple[bytes, bytes]]]:
    for at in range(0, len(keys), _BATCH):
        yield [(key, _VALUE) for key in sorted(keys[at : at + _BATCH])]


def measure(name: str, path: str) -> dict[str, float]:
    """Return microseconds for each operation, the start in ms and the memory in MiB."""
    rng = random.Random(1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    keys = [b"key-%08d" % number for number in range(_KEYS)]
    shuffled = rng.sample(keys, _KEYS)
    store = _STORES[name](path)
    times = [time.perf_counter()]
    for batch in _batches(shuffled):
        store.write(batch)
    times.append(time.perf_counter())
    for batch in _batches(rng.sample(keys, _READS)):
        store.write(batch)
    times.append(time.perf_counter())
    for key in rng.sample(keys, _READS):
        assert store.get(key) == _VALUE
    times.append(time.perf_counter())
    for at in rng.sample(range(_KEYS - 10), _RANGES):
        assert len(store.rows(keys[at], keys[at + 9])) == 10
    times.append(time.perf_counter())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    del store
    begin = time.perf_counter()
    assert _STORES[name](path).get(keys[5]) == _VALUE
    spans = [end - start for start, end in pairwise(times)]
    counts = _KEYS, _READS, _READS, _RANGES
    insert, update, get, rows = (round(s / n * 1e6, 2) for s, n in zip(spans, counts, strict=True))
    return {
        "insert_us": insert,
        "update_us": update,
        "get_us": get,
        "range_of_10_us": rows,
        "start_ms": round((time.perf_counter() - begin) * 1e3, 1),
        "memory_mib": round(memory / 1024, 1),
    }


def main() -> None:
    """Measure each store, or the one that is named, and print the results as JSON."""
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as path:
            print(json.dumps(measure(sys.argv[1], path)))
        return
    for name in _STORES:
        command = [sys.executable, "-m", "bench.state_stores", name]
        print(name, subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
