"""Run pytest, and repeat the tests that failed one after the other: `make test` and `make quick`.

    python -m tests.run -n 3 tests -k acknowledgement    # arguments are pytest's

A test that fails and passes when it is repeated is flaky. It is listed with the message of its
first failure and appended to `out/flaky.json`; more than three of them fail the run. The run also
fails if a test fails twice.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests import durations
from tests.runs import failures

TESTS = Path(__file__).parent
RESULTS = Path("out")
REPEATED = RESULTS / "repeated"
FLAKY_MAX = 3

# A change that breaks more tests than this has broken them: nothing is learned by repeating.
_REPEATED_MAX = 60
_ONE_BY_ONE = ("-n", "0", "--last-failed", "--last-failed-no-failures", "none")


def main(arguments: Sequence[str]) -> int:
    """Run the tests; return the exit code."""
    _write_bytecode()
    code = _pytest(arguments, RESULTS)
    first = failures.load(RESULTS)
    if code != pytest.ExitCode.TESTS_FAILED or not first.tests:
        return code
    if len(first.tests) > _REPEATED_MAX:
        print(f"{len(first.tests)} tests failed: too many to be repeated.")
        return code
    print(f"\n{len(first.tests)} failed tests run again, one after the other:", flush=True)
    code = _pytest([*_without_budgets(arguments), *_ONE_BY_ONE], REPEATED)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return code
    passed = set(durations.load(REPEATED / "durations.json").tests) - set(
        failures.load(REPEATED).tests
    )
    flaky = {test: text for test, text in first.tests.items() if test in passed}
    if flaky:
        failures.append_flaky(RESULTS, flaky)
        _print_flaky(flaky)
    return exit_code(first, flaky)


def _write_bytecode() -> None:
    """Write the bytecode of the tests, half of them in each of two processes, if it is missing.

    Otherwise each of the processes that run tests would rewrite the assertions of all of them.
    """
    if any(TESTS.rglob(f"conftest.*-pytest-{pytest.__version__}.pyc")):
        return
    files = sorted(str(path) for path in TESTS.rglob("test_*.py"))
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0"]
    halves = [
        subprocess.Popen([*command, *half], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for half in (files[::2], files[1::2])
    ]
    for process in halves:
        process.wait()


def exit_code(first: failures.Failures, flaky: Mapping[str, str]) -> int:
    """Return the exit code of both runs together.

    A failed test that is not flaky has failed twice, or did not run again.
    """
    is_good = first.tests.keys() == flaky.keys() and len(flaky) <= FLAKY_MAX and not first.budgets
    return int(pytest.ExitCode.OK if is_good else pytest.ExitCode.TESTS_FAILED)


def _print_flaky(flaky: Mapping[str, str]) -> None:
    print(f"\nflaky: {len(flaky)} tests failed and passed when repeated (at most {FLAKY_MAX} may):")
    for test, message in flaky.items():
        print(f"  {test}\n      {message}")
    print(flush=True)


def _without_budgets(arguments: Sequence[str]) -> list[str]:
    return [word for word in arguments if word not in ("--budgets", "--durations-table")]


def _pytest(arguments: Sequence[str], results: Path) -> int:
    """Run pytest in a process of its own, whose failures are stored below a folder."""
    failures.forget(results)
    command = [sys.executable, "-m", "pytest", *arguments, "--results", str(results)]
    with subprocess.Popen(command) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                # A terminal interrupts pytest, too, which then shows the failures so far.
                continue


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
