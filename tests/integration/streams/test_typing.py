"""Type checkers infer the result of each operator and report errors."""

import subprocess
import sys
from pathlib import Path

TYPED = Path(__file__).with_name("typed.py")
PORTS = Path(__file__).parents[2] / "streams"
EXAMPLES = [str(PORTS / "kafka_examples.py"), str(PORTS / "kafka_tutorials.py")]


def test_streams_and_tables_have_types() -> None:
    """Running mypy --strict confirms every assert_type and every marked error."""
    # Other options than `make check` uses, whose cache would not fit.
    options = ["--strict", "--cache-dir", ".mypy_cache/strict"]
    command = [sys.executable, "-m", "mypy", *options, str(TYPED), *EXAMPLES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
