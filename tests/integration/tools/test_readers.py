"""Verbs whose reader has gone, as in `ottla topic list | head -1`, end silently."""

import os
import shlex
import subprocess

import pytest

from ottla.testing import Cluster
from ottla.testing.process import COMMAND
from tests.integration.tools.test_mirror import produce


@pytest.mark.parametrize(
    "words",
    [
        "topic list",
        "topic list --output json",
        "topic describe orders --explain",
        "consume orders -e",
        "consume orders -e -G readers",
        "cluster info",
        "cluster health --output json",
        "perf produce orders --records 5",
        "perf verifiable-produce orders --records 5 --output json",
        "perf verifiable-consume orders --group g --records 1 --each",
        "scripts list",
        "generate grafana-dashboard",
    ],
)
def test_reader_that_has_gone_is_no_error(words: str, ottla_cluster: Cluster) -> None:
    """The exit code is 0, and nothing but notes is on standard error."""
    ottla_cluster.create_topic("orders", partitions=1)
    produce(ottla_cluster, "orders", [b"1", b"2"])
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, *words.split()],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
            env={**os.environ, "OTTLA_BOOTSTRAP": ottla_cluster.bootstrap},
        )
    finally:
        os.close(writing)
    errors = [line for line in done.stderr.splitlines() if " <- " not in line]
    assert (done.returncode, errors) == (0, [])


def test_usage_error_without_a_reader_keeps_its_exit_code() -> None:
    """`ottla nonsense 2>&1 | head -1` ends with 2, as without a pipe."""
    program = shlex.join(COMMAND)
    done = subprocess.run(
        f'{program} nonsense 2>&1 | true; echo "${{PIPESTATUS[0]}}"',
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("2\n", "")
