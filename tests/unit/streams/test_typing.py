"""Type checkers know what comes out of each operator, and tell what does not fit."""

import subprocess
import sys
from pathlib import Path

TOPOLOGIES = Path(__file__).with_name("typed.py")


def test_streams_and_tables_have_types() -> None:
    """mypy --strict agrees with every assert_type, and finds each error that is marked."""
    command = [sys.executable, "-m", "mypy", "--strict", str(TOPOLOGIES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
