"""Ottla without the names and folders that macOS lacks: the quick tests, and a broker with clients.

Not covered: kqueue, the file system and the kernel of macOS. `make portable` runs the tests of the
first test with a progress report.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client import Consumer, Producer
from ottla.testing.process import BrokerProcess
from tests.portable.__main__ import FOLDERS, QUICK, SITE, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

_LARGE = b"x" * 600_000


@pytest.mark.parametrize("folders", [FOLDERS[:3], FOLDERS[3:]], ids=["system", "products"])
def test_quick_tests_pass_in_the_portable_mode(folders: tuple[str, ...]) -> None:
    """No code of these packages needs a name of Linux."""
    command = [sys.executable, "-m", "pytest", *QUICK, "-n", "2", *folders]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "ottla", *arguments]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(name="broker", params=["asyncio", "uvloop"])
def _broker(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BrokerProcess]:
    monkeypatch.setenv("PYTHONPATH", str(SITE))
    if request.param == "asyncio":
        monkeypatch.setenv("PORTABLE_WITHOUT", "uvloop")
    with BrokerProcess(tmp_path / "data") as broker:
        yield broker


def test_a_broker_serves_records_in_the_portable_mode(broker: BrokerProcess) -> None:
    """Large responses come from their file; a restart finds the records, and doctor the owner."""
    settings = {"bootstrap.servers": broker.bootstrap}
    with Producer(settings) as producer:
        producer.send("t", _LARGE, key=b"1")
        producer.send("t", b"small", key=b"2").result(30)
    broker.restart()
    values: set[bytes | None] = set()
    with Consumer("t", config={**settings, "group.id": "g", "auto.offset.reset": "earliest"}) as c:
        while len(values) < 2:
            values |= {record.value for record in c.poll(10)}
    assert values == {_LARGE, b"small"}
    report = _run(
        "doctor", "--bootstrap", broker.bootstrap, "--data", str(broker.data), "--output", "json"
    )
    found = {finding["check"]: finding["found"] for finding in json.loads(report)}
    assert f"process {broker.process_id} (" in found[f"lock of {broker.data}"]
    assert found[f"file system below {broker.data}"]


def test_the_mode_hides_what_macos_lacks() -> None:
    """Without this, the other tests would prove nothing."""
    code = (
        "import os, selectors, sys; "
        "print(sys.platform, hasattr(os, 'eventfd'), hasattr(selectors, 'EpollSelector'), "
        "os.path.exists('/proc/self'), os.uname().sysname)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["darwin", "False", "False", "False", "Darwin"]
    assert os.path.exists("/proc/self")
