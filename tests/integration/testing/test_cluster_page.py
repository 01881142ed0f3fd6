"""The example of docs/cluster.md runs as shown."""

import re
from typing import Any

from tests.law import source


def test_a_cluster_of_the_page_survives_the_death_of_a_leader() -> None:
    """Its lines kill the leader of a topic, find another one, and wait for the former one."""
    page = (source.ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    lines = example.replace(
        'cluster.leader("orders")  #', 'successor = cluster.leader("orders")  #'
    )
    exec(compile(lines, "docs/cluster.md", "exec"), names)
    assert names["successor"] != names["leader"]
