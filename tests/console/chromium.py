"""Debian's Chromium for tests, driven by Playwright, with axe-core.

The fixtures `browser`, `watched` and `page` of conftest.py open the browser and the page of an
admin, and check the log of each test. Without Chromium the tests that need it are skipped, or fail:
`tests.runs.needs`. OTTLA_SCREENSHOTS names a folder for pictures of the pages.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    FloatRect,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.console.session import PASSWORD
from tests.runs import needs

SCREENSHOTS = "OTTLA_SCREENSHOTS"
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 800}
_SERIOUS = ("serious", "critical")
_PATIENCE_MS = 15_000
# Pictures show the charts below the first screen, but not whole lists.
_PICTURE_HEIGHT = 1400
# The sandbox needs privileges that a container does not have; the pages are our own.
_ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--lang=en-US"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium without a window."""
    needs.require("chromium")
    path = shutil.which("chromium")
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
        response = Axe().run(self.page).response["violations"]
        return [
            f"{item['id']}: {item['nodes'][0]['html'][:200]}"
            for item in response
            if item["impact"] in _SERIOUS
        ]

    def expect_to_fit_a_phone(self) -> None:
        """Fail if the page scrolls sideways on a phone; also with its folded parts open."""
        self.page.set_viewport_size(PHONE)
        folded = self.page.locator("main details")
        folded.evaluate_all("nodes => nodes.forEach(node => node.open = true)")
        try:
            expect(self.page.locator("html")).to_have_js_property("scrollWidth", PHONE["width"])
        finally:
            self.page.set_viewport_size(DESKTOP)

    def picture(self, name: str, *, is_dark: bool = False) -> None:
        """Take a picture of the page if OTTLA_SCREENSHOTS asks for it.

        With `is_dark` also one of the page in the dark theme, which is loaded again: its charts are
        drawn in the colours of the theme.
        """
        folder = os.environ.get(SCREENSHOTS)
        if not folder:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._draw(f"{folder}/{name}.png")
        if is_dark:
            self.page.emulate_media(color_scheme="dark")
            self.page.reload()
            self._draw(f"{folder}/{name}-dark.png")
            self.page.emulate_media(color_scheme="light")

    def _draw(self, path: str) -> None:
        self.page.wait_for_load_state("networkidle")
        size = self.page.viewport_size
        assert size is not None, "each page has a size"
        height = self.page.evaluate("document.documentElement.scrollHeight")
        largest = max(size["height"], min(height, _PICTURE_HEIGHT))
        clip: FloatRect = {"x": 0, "y": 0, "width": size["width"], "height": largest}
        self.page.screenshot(path=path, full_page=True, clip=clip)
        # A palette halves the size of a picture of text.
        Image.open(path).convert("RGB").quantize(48).save(path, optimize=True)

    def _on_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)


@contextmanager
def admin_page(browser: Browser, url: str) -> Iterator[Watched]:
    """Yield a page, 1280 pixels wide, on which the admin of a console has logged in."""
    context = browser.new_context(viewport=DESKTOP, base_url=url, timezone_id="UTC")
    try:
        watched = Watched(context.new_page())
        watched.page.goto("/c/local/topics")
        watched.picture("login")
        watched.page.get_by_label("User").fill("admin")
        watched.page.get_by_label("Password").fill(PASSWORD)
        watched.page.get_by_role("button", name="Log in").click()
        expect(watched.page.get_by_role("heading", name="Topics")).to_be_visible()
        yield watched
    finally:
        context.close()


@contextmanager
def without_errors(watched: Watched) -> Iterator[Page]:
    """Yield the page; fail if the browser's log has an error at the end."""
    watched.forgive()
    yield watched.page
    assert watched.errors == []
