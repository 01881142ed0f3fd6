"""Repeat the tests of folders or files under load, to find those that fail now and then.

    python -m tests.flaky tests/process --runs 20 --load 2

`--load` processes that compute all the time take turns with the tests. Every test that failed is
listed with its number of failures and the message of the first one, and appended to
`out/flaky.json`; `out/flaky/run-N.txt` has the output of a run with failures. The exit code is 1 if a test has failed.
"""

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runs import failures

RESULTS = Path("out")


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Compute in so many processes until the end of the block."""
    loads = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for load in loads:
            load.kill()
            load.wait()


def repeat(targets: Sequence[str], runs: int, arguments: Sequence[str]) -> dict[str, list[str]]:
    """Run the tests so many times; return the messages of the failures of each test."""
    messages: dict[str, list[str]] = {}
    for number in range(1, runs + 1):
        folder = RESULTS / "flaky"
        failures.forget(folder)
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *targets, *arguments, "--results", str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            raise SystemExit(f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}")
        failed = failures.load(folder).tests
        for test, message in failed.items():
            messages.setdefault(test, []).append(message)
        if failed:
            (folder / f"run-{number}.txt").write_text(done.stdout, encoding="utf-8")
        seconds = time.monotonic() - start
        print(f"run {number} of {runs}: {len(failed)} failed, {seconds:.0f} s", flush=True)
        for test, message in failed.items():
            print(f"      {test}\n        {message}", flush=True)
    return messages


def _report(messages: dict[str, list[str]], runs: int) -> None:
    counts = Counter({test: len(texts) for test, texts in messages.items()})
    print(f"{len(counts)} tests failed at least once in {runs} runs")
    for test, count in counts.most_common():
        print(f"{count:4d}  {test}\n      {messages[test][0]}")


def main(words: Sequence[str]) -> int:
    """Repeat the tests; return 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.flaky", description=__doc__)
    parser.add_argument("targets", nargs="+", metavar="FOLDER", help="folders, files or tests")
    parser.add_argument("--runs", type=int, default=20, help="repetitions (default: 20)")
    parser.add_argument("--load", type=int, default=2, help="busy processes (default: 2)")
    options, arguments = parser.parse_known_args(words)
    with busy(options.load):
        messages = repeat(options.targets, options.runs, arguments)
    failures.append_flaky(RESULTS, {test: texts[0] for test, texts in messages.items()})
    _report(messages, options.runs)
    return int(bool(messages))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
