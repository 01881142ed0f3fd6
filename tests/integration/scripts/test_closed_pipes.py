"""Scripts whose reader has gone, as in `kafka-topics --list | head -1`, end as Apache Kafka's do."""

import os
import re
import subprocess
import sys

import pytest

from ottla.client.admin import offsets
from ottla.testing import Cluster
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

_PROGRAM = "from ottla_scripts.entry import main; main({!r})"
# Their output is more than the buffer of a stream, so that writing fails before the end.
_MANY = 50


def _run_without_reader(name: str, *words: str, program: str = _PROGRAM) -> tuple[int, str]:
    """Run a script whose standard output is a pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program.format(name), *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    finally:
        os.close(writing)
    return done.returncode, done.stderr


@pytest.fixture(name="many")
def _many(ottla_cluster: Cluster) -> Cluster:
    for number in range(_MANY):
        ottla_cluster.create_topic(f"{number:0>240}", partitions=1)
    return ottla_cluster


def test_long_output_is_no_error(many: Cluster) -> None:
    """The exit code is the script's, and there is no message."""
    at = ("--bootstrap-server", many.bootstrap)
    assert _run_without_reader("kafka-topics", *at, "--list") == (0, "")
    assert _run_without_reader("kafka-topics", *at, "--describe") == (0, "")
    assert _run_without_reader("kafka-get-offsets", *at) == (0, "")
    assert _run_without_reader("kafka-log-dirs", *at, "--describe") == (0, "")


def test_failure_keeps_its_exit_code(many: Cluster) -> None:
    """The exit code is not the pipe's, and a message on standard error is printed."""
    at = ("--bootstrap-server", many.bootstrap)
    assert _run_without_reader("kafka-topics", *at, "--describe", "--topic", "none") == (1, "")
    code, errors = _run_without_reader("kafka-topics", *at, "--nonsense")
    assert (code, errors.splitlines()[0]) == (1, "nonsense is not a recognized option")


def test_script_does_all_its_work(ottla_cluster: Cluster) -> None:
    """All records are written although nothing reads the events."""
    ottla_cluster.create_topic("numbers", partitions=1)
    words = ("--bootstrap-server", ottla_cluster.bootstrap, "--topic", "numbers")
    words += ("--max-messages", "5")
    assert _run_without_reader("kafka-verifiable-producer", *words) == (0, "")
    with ottla_cluster.admin() as brokers:
        rows = offsets.list_offsets(brokers, {("numbers", 0): offsets.LATEST})
    assert rows["numbers", 0].offset == 5


@pytest.mark.parametrize("name", ["kafka-verifiable-consumer", "kafka-replica-verification"])
def test_script_without_an_end_ends_with_its_reader(name: str, ottla_cluster: Cluster) -> None:
    """A script that reports until it is stopped does not continue without a reader."""
    ottla_cluster.create_topic("numbers", partitions=1)
    produce(ottla_cluster, "numbers", [b"1"])
    at = ottla_cluster.bootstrap
    words = {
        "kafka-verifiable-consumer": ("--bootstrap-server", at, "--topic", "numbers", "--group-id", "g"),
        "kafka-replica-verification": ("--broker-list", at, "--report-interval-ms", "1"),
    }[name]  # fmt: skip
    code, errors = _run_without_reader(name, *words)
    notices = [line for line in errors.splitlines() if line.startswith("WARN")]
    assert (code, errors.splitlines()) == (0, notices)


def test_closed_standard_error_is_ignored() -> None:
    """`kafka-topics --nonsense 2>&1 | head -1` keeps the exit code of the script."""
    done = subprocess.run(
        f'{sys.executable} -c "{_PROGRAM.format("kafka-topics")}" --nonsense 2>&1 | true; '
        'echo "${PIPESTATUS[0]}"',
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_script_that_ottla_runs_ends_alike(many: Cluster) -> None:
    """`ottla scripts run kafka-topics … | head -1` is no error either."""
    program = "from ottla.tools.main import main; main()"
    words = ("scripts", "run", "kafka-topics", "--bootstrap-server", many.bootstrap, "--list")
    assert _run_without_reader("", *words, program=program) == (0, "")


@pytest.mark.parametrize("words", [["--list"], ["--describe"]])
@pytest.mark.parametrize(
    "program", [_PROGRAM.format("kafka-topics"), "from ottla.tools.main import main; main()"]
)
def test_full_disk_is_one_sentence(many: Cluster, program: str, words: list[str]) -> None:
    """The line `kafka-topics --list > /dev/full` fails, because its output is incomplete."""
    script = ["scripts", "run", "kafka-topics"] if "main import" in program else []
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, *script, "--bootstrap-server", many.bootstrap, *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    sentence = (
        r"(kafka-topics: |ottla: |ottla: cannot write to )standard output: "
        r"No space left on device(: free some space, then try again)?\n"
    )
    assert done.returncode == 1
    assert re.fullmatch(sentence, done.stderr)


def test_full_disk_is_one_sentence_of_ottla_as_well(ottla_cluster: Cluster) -> None:
    """The line `ottla topic list > /dev/full` has no traceback."""
    program = "from ottla.tools.main import main; main()"
    ottla_cluster.create_topic("orders", partitions=1)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                program,
                "topic",
                "list",
                "--bootstrap",
                ottla_cluster.bootstrap,
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "ottla: cannot write to standard output: No space left on device: "
    )
    assert done.stderr.count("\n") == 1
