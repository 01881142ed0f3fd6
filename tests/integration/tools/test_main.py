"""The command line as a process: exit codes, signals, standard streams, imports."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla.testing import Cluster
from ottla.testing.process import COMMAND


def test_python_m_ottla_is_the_command() -> None:
    """`python -m ottla` prints what `ottla` prints, and has its exit codes."""
    command = [sys.executable, "-m", "ottla"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"ottla {ottla.__version__}\n"
    failed = subprocess.run([*command, "topic", "nonsense"], capture_output=True, text=True)
    assert failed.returncode == 2
    assert "Usage: ottla topic" in failed.stderr


def test_list_of_commands_imports_none_of_them() -> None:
    """Help and completion stay fast without these imports."""
    code = (
        "import sys; from ottla.tools.main import run; run(['--help']); run(['topic', '--help']);"
        "print([m for m in sys.modules if m.startswith('ottla.tools.topic')"
        " or m in ('asyncio', 'rich', 'confluent_kafka', 'ottla.client.connection')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_cluster_commands_need_no_event_loop() -> None:
    """Importing asyncio would take a quarter of a command's time."""
    code = (
        "import sys, ottla.tools.topic.describe, ottla.tools.group.reset, ottla.tools.topic.config;"
        "import ottla.tools.group.describe;"
        "print([m for m in ('asyncio', 'rich', 'confluent_kafka', 'ottla.wire.api_keys', 'ottla.streams')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_shell_completes_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are in the environment, as in bash, and there is one completion a line."""
    requested = {
        "ottla to": ["topic", "token"],
        "ottla topic de": ["describe", "delete"],
        "ottla topic create --par": ["--partitions"],
    }
    for typed, expected in requested.items():
        environment = {
            "_OTTLA_COMPLETE": "bash_complete",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split()) - 1),
            "PATH": "",
        }
        done = subprocess.run(
            [sys.executable, "-c", "from ottla.tools.main import main; main()"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert [line.split(",")[1] for line in done.stdout.split()] == expected


def test_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """The pipeline `ottla … | head -1` ends without an error message."""
    done = subprocess.run(
        f"{sys.executable} -c 'from ottla.tools.main import main; main()' --help | true; "
        'echo "${PIPESTATUS[0]}"',
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("line", ["consume t -e -q", "produce t", "topic list", "--help"])
def test_closed_standard_streams_are_like_dev_null(
    line: str, closed: str, ottla_cluster: Cluster
) -> None:
    """A service manager or cron may start a command without them."""
    ottla_cluster.create_topic("t", partitions=1)
    done = subprocess.run(
        ["/bin/bash", "-c", f"exec {shlex.join(COMMAND)} {line} {closed}"],
        env=os.environ | {"OTTLA_BOOTSTRAP": ottla_cluster.bootstrap},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", ["topic list", "learn --list", "completion zsh", "--help"])
def test_full_disk_is_a_sentence(line: str, ottla_cluster: Cluster) -> None:
    """The result is not complete, so the exit code is not 0."""
    ottla_cluster.create_topic("t", partitions=1)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *line.split()],
            env=os.environ | {"OTTLA_BOOTSTRAP": ottla_cluster.bootstrap},
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        1,
        "ottla: cannot write to standard output: No space left on device: free some space, then "
        "try again\n",
    )


_INTERRUPTED_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(name, *rest):
        if name == "ottla.tools.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
from ottla.__main__ import main
main()
"""


def test_ctrl_c_while_the_command_is_loaded_has_no_traceback() -> None:
    """The process ends by the signal, as a shell expects."""
    command = [sys.executable, "-c", _INTERRUPTED_IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
