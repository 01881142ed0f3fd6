"""The arrangement of the pages: one text for README and first page, and short pages."""

import re

import ottla
from docs import generate
from tests.law import source

DOCS = source.ROOT / "docs"
_FIGURES = re.compile(r"<!-- figures: begin -->.*?<!-- figures: end -->", re.DOTALL)
_WORDS = 2_500


def _first_page() -> str:
    readme = (source.ROOT / "README.md").read_text(encoding="utf-8")
    _, begin, rest = readme.partition("(docs/index.md includes this part) -->")
    text, end, _ = rest.partition("<!-- first page: end -->")
    assert begin and end, "README.md has lost a mark"
    return text


def test_the_first_page_is_a_part_of_the_readme() -> None:
    """The page includes it between two marks, and has no text of its own before the contents."""
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    assert "```{include} ../README.md" in page
    assert page.partition("```{toctree}")[0].count("```") == 2
    for mark in re.findall(r':(?:start-after|end-before): "([^"]+)"', page):
        assert (source.ROOT / "README.md").read_text(encoding="utf-8").count(mark) == 1
    for heading in ("## Install", "## Five minutes", "## Three doors", "!["):
        assert heading in _first_page()


def test_the_first_page_names_the_version() -> None:
    """The banner of a release has its number."""
    assert f"version {ottla.__version__}." in _first_page()


def test_the_site_has_its_four_parts() -> None:
    """Tutorials, how-to guides, reference and explanation; each page is in one of them."""
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    captions = re.findall(r":caption: (.+)", page)
    assert captions[1:5] == ["Tutorials", "How-to guides", "Reference", "Explanation"]
    listed = re.findall(r"^[a-z][\w-]*$", page, re.MULTILINE)
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages)


def test_no_page_is_longer_than_its_limit() -> None:
    """Split a longer page by kind; generated pages and tables are for a search."""
    texts = {path: path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    written = {path: text for path, text in texts.items() if generate.NOTE not in text}
    assert len(written) > 30
    lengths = {path.name: len(_FIGURES.sub("", text).split()) for path, text in written.items()}
    assert {name: words for name, words in lengths.items() if words > _WORDS} == {}
