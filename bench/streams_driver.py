"""Measure how many records per second the TopologyTestDriver processes, and print it as JSON.

Run it with `python -m bench.streams_driver`.
"""

import json
import time

from bench.streams_input import VALUE_BYTES, each_key_once, name_of
from bench.streams_topologies import TOPOLOGIES, build
from ottla.streams import TopologyTestDriver
from ottla.streams.task.task import TopicRecord

_RECORDS = 50_000
_KEYS = 1000
_START_MS = 1_700_000_000_000


def measure(name: str) -> tuple[float, float]:
    """Return records per second, and the seconds until a driver has returned its first result."""
    keys = each_key_once(_KEYS, _RECORDS).tolist()
    names = [name_of(key) for key in keys]
    value = b"a" * VALUE_BYTES
    begin = time.perf_counter()
    with TopologyTestDriver(build(name, "in", "table", "out")) as driver:
        if name == "table_join":
            for key in names[:_KEYS]:
                driver.pipe("table", TopicRecord(key, value, _START_MS, ()))
        driver.pipe("in", TopicRecord(names[0], value, _START_MS, ()))
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        for number, key in enumerate(names):
            driver.pipe("in", TopicRecord(key, value, _START_MS + number, ()))
        seconds = time.perf_counter() - begin
        assert len(driver.produced("out")) == _RECORDS + 1
    return _RECORDS / seconds, first


def main() -> None:
    """Run all measurements and print them."""
    print(json.dumps({name: measure(name) for name in TOPOLOGIES}))


if __name__ == "__main__":
    main()
