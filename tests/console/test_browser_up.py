"""The command `ottla up --console` in Chromium: from its login link to its end by Ctrl-C."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from ottla.testing.process import COMMAND
from tests.console.chromium import Watched, chromium, without_errors
from tests.console.conftest import PASSWORD

# Seconds: the only test of the command, its output and its pages together.
pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

_PATIENCE_S = 30.0
_READY = re.compile(r"Ottla is ready on (\S+) ")
_CONSOLE = re.compile(r"The console is on ((\S+)/login\?token=\S+) \(valid once\)\n")


@contextmanager
def up(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run `ottla up --console` with its data in a folder; it is killed if it still runs at the end."""
    arguments = ["up", "--port", "0", "--console", "--console-port", "0", "--data", str(folder)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environment.pop("OTTLA_CONSOLE_PASSWORD", None)
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str], pattern: re.Pattern[str]) -> re.Match[str]:
    """Return the first line of the output that matches; the limit of the test also limits the wait."""
    assert process.stdout is not None
    for text in process.stdout:
        if match := pattern.match(text):
            return match
    raise AssertionError(f"the command has ended: {process.communicate()}")


def test_the_command_is_used_from_its_login_link_to_its_end(tmp_path: Path) -> None:
    """The link logs in once, the admin chooses a password, the overview shows the broker, and Ctrl-C
    ends all with status 0.
    """
    with up(tmp_path / "data") as process, chromium() as browser:
        line(process, _READY)
        link, url = line(process, _CONSOLE).groups()
        context = browser.new_context(base_url=url)
        with without_errors(Watched(context.new_page())) as page:
            page.goto(link)
            expect(page.locator(".head").first).to_be_visible()
            page.goto("/account")
            expect(page.get_by_label("Current password")).to_have_count(0)
            page.get_by_label("New password, at least").fill(PASSWORD)
            page.get_by_label("New password again").fill(PASSWORD)
            page.get_by_role("button", name="Change the password").click()
            expect(page.get_by_role("status")).to_be_visible()
            page.goto("/c/local/overview")
            expect(page.locator(".head").first).to_contain_text("healthy")
            brokers = page.locator("section").filter(
                has=page.get_by_role("heading", name="Brokers")
            )
            expect(brokers.locator("tbody tr")).to_have_count(1)
            expect(brokers.locator("tbody tr")).to_contain_text("controller")
        context.close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=_PATIENCE_S)
        assert process.returncode == 0
        assert "Traceback" not in errors
    with up(tmp_path / "data") as process:
        # An admin who has a password logs in with it.
        assert line(process, re.compile(r"The console is on (\S+)\n"))
