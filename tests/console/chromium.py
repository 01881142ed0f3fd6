"""Debian's Chromium for tests, driven by Playwright, with axe-core.

Without Chromium the tests that need it are skipped. CI sets OTTLA_TESTS_NEED_CHROMIUM: there a test
that cannot run fails. OTTLA_SCREENSHOTS names a folder for pictures of the pages.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

REQUIRED = "OTTLA_TESTS_NEED_CHROMIUM"
SCREENSHOTS = "OTTLA_SCREENSHOTS"
_SERIOUS = ("serious", "critical")
_PATIENCE_MS = 15_000
# The sandbox needs privileges that a container does not have; the pages are our own.
_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--lang=en-US"]


def give_up(reason: str) -> NoReturn:
    """Skip the test; fail it in CI."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, but {reason}")
    pytest.skip(reason)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium without a window."""
    path = shutil.which("chromium")
    if path is None:
        give_up("chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page whose log must stay free of errors."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("console", self._on_message)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.set_default_timeout(_PATIENCE_MS)
        expect.set_options(timeout=_PATIENCE_MS)

    def forgive(self) -> None:
        """Forget the errors of responses that a test provoked."""
        self.errors.clear()

    def violations(self) -> list[str]:
        """Return the serious violations that axe-core finds, with the first element of each."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{item['id']}: {item['nodes'][0]['html'][:200]}"
            for item in found
            if item["impact"] in _SERIOUS
        ]

    def picture(self, name: str) -> None:
        """Take a picture of the page if OTTLA_SCREENSHOTS asks for it."""
        folder = os.environ.get(SCREENSHOTS)
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            path = f"{folder}/{name}.png"
            self.page.screenshot(path=path)
            # A palette halves the size of a picture of text.
            Image.open(path).convert("RGB").quantize(48).save(path, optimize=True)

    def _on_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)
