"""The site's own steps of Sphinx: links to source files, dark pictures, and words of the search.

* A link to a file outside this folder leads to the repository (`ottla_repository`), instead of a
  download. Without an address of the repository it is text.
* A picture `x.png` beside `x-dark.png` is replaced by the latter on a dark page.
* `MAIN_PAGES` names the page that a search for a word has to find first.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

NO_REPOSITORY = ""
ROOT = Path(__file__).resolve().parents[1]

# The main entry of a word in the index, which the search ranks first.
MAIN_PAGES = {
    "index": ("install", "installation", "pip"),
    "containers": ("docker", "container", "kubernetes", "podman"),
    "testing-with-ottla": ("test", "testing", "pytest", "fixture"),
    "client": ("rebalance", "producer", "consumer"),
    "operations": ("lag", "alert"),
    "applications": ("exactly once",),
    "backup": ("backup", "restore"),
    "retention": ("retention", "compaction"),
    "troubleshooting": ("error", "problem"),
    "upgrade": ("upgrade",),
}


class SourceLinks(SphinxTransform):
    """Lead links to files of the repository to its address."""

    # Before the collector of downloads reads the document.
    default_priority = 800

    def apply(self, **kwargs: Any) -> None:
        """Replace the downloads of one page, except pictures."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for link in list(self.document.findall(addnodes.download_reference)):
            path = (folder / link["reftarget"]).resolve()
            if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "docs/images"):
                continue
            link.replace_self(self._reference(path.relative_to(ROOT).as_posix(), link.children))

    def _reference(self, path: str, children: list[nodes.Node]) -> nodes.Node:
        base = self.config.ottla_repository.rstrip("/")
        if not base:
            return nodes.inline("", "", *children, classes=["source"])
        return nodes.reference("", "", *children, refuri=f"{base}/{path}", internal=False)


class DarkPictures(SphinxTransform):
    """Add the dark variant of a picture."""

    default_priority = 800

    def apply(self, **kwargs: Any) -> None:
        """Add a second picture to one page for each that has a dark variant."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for image in list(self.document.findall(nodes.image)):
            path = Path(image["uri"])
            dark = path.with_name(f"{path.stem}-dark{path.suffix}")
            if (folder / dark).exists():
                image["classes"].append("only-light")
                copy = image.deepcopy()
                copy["uri"], copy["classes"] = dark.as_posix(), ["only-dark"]
                image.parent.insert(image.parent.index(image) + 1, copy)


class MainEntries(SphinxTransform):
    """Give a page the main entries of its words in the index."""

    # Before the domains read the document (850).
    default_priority = 800

    def apply(self, **kwargs: Any) -> None:
        """Insert the entries at the beginning of one page."""
        words = MAIN_PAGES.get(self.env.docname, ())
        if not words:
            return
        entries = [("single", word, f"main-{self.env.docname}", "main", None) for word in words]
        target = nodes.target("", "", ids=[f"main-{self.env.docname}"])
        section = next(iter(self.document.findall(nodes.section)))
        section[1:1] = [addnodes.index(entries=entries), target]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the steps."""
    app.add_config_value("ottla_repository", NO_REPOSITORY, "env")
    for step in (SourceLinks, DarkPictures, MainEntries):
        app.add_transform(step)
    return {"parallel_read_safe": True}
