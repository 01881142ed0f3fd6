"""The built site: its search finds the right page, and its links to source are no downloads."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import playwright
import pytest

from docs import site
from tests.law import source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_SEARCH = Path(__file__).with_name("site_search.js")
_REPOSITORY = "https://example.com/ottla/blob/main"
# The page that a reader looks for with each query.
_RIGHT = {
    "docker": "containers",
    "install": "index",
    "rebalance": "client",
    "test": "testing-with-ottla",
    "lag": "operations",
    "exactly once": "applications",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site with an address of the repository; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    command += ["-D", f"ottla_repository={_REPOSITORY}", "docs", str(folder)]
    done = subprocess.run(command, cwd=source.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def _search(folder: Path, queries: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the pages that each query finds, best first."""
    node = shutil.which("node") or str(Path(playwright.__file__).parent / "driver/node")
    done = subprocess.run(
        [node, str(_SEARCH), str(folder), *queries], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(queries, json.loads(done.stdout), strict=True))


def test_the_search_finds_the_right_page_among_the_first_three(built: Path) -> None:
    """Six words that newcomers type; decision records are after all other pages."""
    results = _search(built, list(_RIGHT))
    for query, page in _RIGHT.items():
        assert page in results[query][:3], f"{query}: {results[query][:6]}"
        is_decision = [name.startswith("decisions/") for name in results[query]]
        assert is_decision == sorted(is_decision), query


def test_every_main_entry_is_found_first(built: Path) -> None:
    """The table of the site names the first page of each word."""
    words = {word: page for page, words in site.MAIN_PAGES.items() for word in words}
    results = _search(built, list(words))
    assert {word: results[word][0] for word in words} == words


def test_links_to_source_lead_to_the_repository(built: Path) -> None:
    """Only pictures are downloads."""
    assert f'href="{_REPOSITORY}/ottla/server/' in (built / "apis.html").read_text("utf-8")
    downloads = [path.suffix for path in (built / "_downloads").rglob("*") if path.is_file()]
    assert set(downloads) <= {".png", ".svg"}


def test_the_first_page_has_the_text_of_the_readme(built: Path) -> None:
    """Both show the status, the commands and the three doors; the picture has a dark variant."""
    page = (built / "index.html").read_text(encoding="utf-8")
    for text in ("Status: alpha", "Five minutes", "Three doors", "only-dark", "overview-dark"):
        assert text in page, text
