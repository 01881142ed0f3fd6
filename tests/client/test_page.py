"""The examples of docs/client.md work as shown."""

import re
from pathlib import Path

from ottla.testing import Cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"


def test_examples_of_the_page(cluster: Cluster) -> None:
    """The blocks run one after the other in one namespace, and contain their assertions."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    names = {"bootstrap": cluster.bootstrap}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
